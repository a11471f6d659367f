// SPDX-License-Identifier: Apache-2.0
#include "fuzz/paths/rescale_model.h"

#include <algorithm>
#include <cstdio>

#include "oracle/exact/interval.h"

namespace assay::fuzz {
namespace {

using oracle::Interval;

// Differences of fp32 scores need 280 bits, their product with a scale 304.
constexpr int kPrecision = 320;
constexpr double kU = 0x1p-24;
constexpr double kLog2E = 1.44269504088896340736;
constexpr double kSlack = 1.0 + 0x1p-20; // products of bounds, evaluation of the bounds in double
constexpr double kLimit = 0x1p126;

/// Lower and upper end, each enclosed.
struct Range {
  Interval low{kPrecision}, high{kPrecision};

  bool excludes(double x) const { return low.certainly_above(x) || high.certainly_at_most(x); }
  void widen(double by) {
    low -= by;
    high += by;
  }
};

/// The float contribution 2^(scale (score - m)) of one key. A path of exponentials telescopes:
/// their arguments have one sign and add up to x, each is rounded twice (difference, product).
Range weight_of(const Key &key, float m, float scale) {
  Interval x(kPrecision, key.score);
  x -= m;
  x *= scale; // <= 0
  // 4 u for the exponential, u for the product, u for the sum; an argument below 2^-126 counts as
  // 0.
  const double error =
      kSlack * (-x.middle() * 2 * kU + key.steps * (6 * kU * kLog2E + 0x1p-125)) + 0x1p-200;
  Range w{x, x};
  w.widen(error);
  w.low.apply_exp2();
  w.high.apply_exp2();
  return w;
}

struct Bounds {
  Range d;
  std::array<Range, kLanes> o;
  std::array<double, kLanes> mass{}; // sum of |v|
};

Bounds bounds_of(const Model &model, float scale) {
  Bounds b;
  for (const Key &key : model.keys) {
    for (int c = 0; c < kLanes; ++c)
      b.mass[c] += std::fabs(static_cast<double>(key.v[c]));
    if (key.score == -INFINITY) continue;
    const Range w = weight_of(key, model.m, scale);
    b.d.low += w.low;
    b.d.high += w.high;
    for (int c = 0; c < kLanes; ++c) {
      Range term = key.v[c] < 0 ? Range{w.high, w.low} : w;
      term.low *= static_cast<double>(key.v[c]);
      term.high *= static_cast<double>(key.v[c]);
      b.o[c].low += term.low;
      b.o[c].high += term.high;
    }
  }
  // Flush to zero: each operation loses at most 2^-126 of the state or of a product.
  const double floor = (model.operations + 1) * 0x1p-125;
  b.d.widen(floor * (static_cast<double>(model.keys.size()) + 2));
  for (int c = 0; c < kLanes; ++c)
    if (b.mass[c] <= kLimit) b.o[c].widen(floor * (b.mass[c] + 4));
  return b;
}

Range lse_range(const Range &d, float m, float scale) {
  Range lse = d;
  lse.low.apply_log2();
  lse.high.apply_log2();
  const double log_d = std::max(std::fabs(lse.low.middle()), std::fabs(lse.high.middle())) + 1;
  const double shift = static_cast<double>(scale) * static_cast<double>(m); // exact: 48 bits
  lse.low += shift;
  lse.high += shift;
  // log2 errs by 2^-22 (1 + |log2 d|), the product by u, their sum by u.
  lse.widen(kSlack * (0x1p-22 * log_d + 2 * kU * (std::fabs(shift) + log_d)) + 0x1p-125);
  return lse;
}

/// Whether x cannot be o / d: above both or below both quotients of the ends of d (d > 0).
bool quotient_excludes(const Range &o, const Range &d, double x) {
  const double error = kSlack * 4 * kU * std::fabs(x) + 0x1p-125; // 1 ulp reciprocal, one product
  const auto quotient = [](Interval a, const Interval &b) { return a /= b; };
  return (quotient(o.low, d.low).certainly_above(x + error) &&
          quotient(o.low, d.high).certainly_above(x + error)) ||
         (quotient(o.high, d.low).certainly_at_most(x - error) &&
          quotient(o.high, d.high).certainly_at_most(x - error));
}

std::string outside(const char *what, double got, const Range &range) {
  char text[200];
  std::snprintf(text, sizeof text, "%s = %a is outside [%.17g, %.17g]", what, got,
                range.low.middle(), range.high.middle());
  return text;
}

/// A score from which no finite weight comes, whatever the maximum.
bool has_no_weight(float score) { return std::isnan(score) || score == INFINITY; }

} // namespace

bool scale_in_range(float scale) { return scale >= 0x1p-126f && scale <= 0x1p126f; }

bool score_in_range(float score, float scale) {
  if (score == -INFINITY) return true; // a masked key
  return std::fabs(score) <= kLimit &&
         std::fabs(static_cast<double>(score) * static_cast<double>(scale)) <= kLimit;
}

bool Model::has_mass() const {
  return std::any_of(keys.begin(), keys.end(), [&](const Key &k) { return k.score == m; });
}

void Model::absorb(float score, const Lanes &v, float scale) {
  for (Key &key : keys)
    ++key.steps;
  keys.push_back({score, v, 1});
  m = std::fmax(m, score);
  ++operations;
  in_range = in_range && scale_in_range(scale) && score_in_range(score, scale);
  nan_absorbed = nan_absorbed || nan_loaded || has_no_weight(score);
}

void Model::rescale(float target, float scale) {
  for (Key &key : keys)
    ++key.steps;
  m = std::fmax(m, target);
  ++operations;
  nan_absorbed = nan_absorbed || nan_loaded;
  in_range =
      in_range && scale_in_range(scale) && (std::isnan(target) || score_in_range(target, scale));
}

void Model::merge(const Model &other) {
  if (other.empty()) return;
  if (empty()) {
    *this = other;
    return;
  }
  keys.insert(keys.end(), other.keys.begin(), other.keys.end());
  for (Key &key : keys)
    ++key.steps;
  m = std::fmax(m, other.m);
  operations += other.operations + 1;
  in_range = in_range && other.in_range;
  nan_absorbed = nan_absorbed || nan_loaded || other.nan_absorbed || other.nan_loaded;
}

Model Model::from_normalized(float lse, const Lanes &o, float scale) {
  Model model;
  model.keys.push_back({lse, o, 0});
  model.m = lse;
  model.nan_loaded = has_no_weight(lse);
  model.in_range = scale_in_range(scale) && score_in_range(lse, scale);
  return model;
}

std::string bound_violation(const Model &model, const Observed &seen, float scale) {
  if (!model.in_range || model.empty()) return "";
  const Bounds b = bounds_of(model, scale);
  if (!std::isfinite(seen.d)) return "d is not finite";
  if (seen.d < 0) return "d is negative";
  if (b.d.excludes(seen.d)) return outside("d", seen.d, b.d);
  const bool has_mass = model.has_mass();
  if (has_mass) {
    const Range lse = lse_range(b.d, model.m, scale);
    if (!std::isfinite(seen.lse)) return "lse is not finite";
    if (lse.excludes(seen.lse)) return outside("lse", seen.lse, lse);
  }
  for (int c = 0; c < kLanes; ++c) {
    if (!(b.mass[c] <= kLimit)) continue;
    if (!std::isfinite(seen.o[c])) return "o is not finite";
    if (b.o[c].excludes(seen.o[c])) return outside("o", seen.o[c], b.o[c]);
    if (!has_mass) continue;
    if (!std::isfinite(seen.normalized[c])) return "normalized o is not finite";
    if (quotient_excludes(b.o[c], b.d, seen.normalized[c]))
      return outside("normalized o (numerator shown)", seen.normalized[c], b.o[c]);
  }
  return "";
}

} // namespace assay::fuzz
