// SPDX-License-Identifier: Apache-2.0
#include "oracle/tests/regimes.h"

#include <algorithm>
#include <cmath>

#include "oracle/exact/dtype.h"

namespace assay::oracle::test {
namespace {

class Draw {
public:
  Draw(assay_dtype dtype, int n, int d, std::mt19937_64 &random)
      : dtype_(dtype), n_(n), d_(d), random_(random) {}

  RowData normal() {
    RowData row;
    row.keys.head_dim = d_;
    for (int i = 0; i < d_; ++i)
      row.q.push_back(gauss());
    for (int i = 0; i < n_ * d_; ++i)
      row.keys.k.push_back(gauss());
    for (int i = 0; i < n_ * d_; ++i)
      row.keys.v.push_back(gauss());
    return row;
  }

  // Scores of logit(j) along one direction, for a scale of 1/sqrt(d); plus a little noise.
  template <class Logit>
  void set_scores(RowData &row, Logit logit, float noise) {
    std::fill(row.q.begin(), row.q.end(), 1.0f);
    for (int j = 0; j < n_; ++j) {
      const float each = static_cast<float>(logit(j)) / std::sqrt(static_cast<float>(d_));
      for (int i = 0; i < d_; ++i)
        row.keys.k[at(j, i)] = each + noise * gauss();
    }
  }

  void finish(RowData &row) {
    const Format &format = format_of(dtype_);
    const auto fix = [&](float &x) {
      const double limited = std::clamp<double>(x, -format.max_finite, format.max_finite);
      x = static_cast<float>(round_to(format, limited));
    };
    std::for_each(row.q.begin(), row.q.end(), fix);
    std::for_each(row.keys.k.begin(), row.keys.k.end(), fix);
    std::for_each(row.keys.v.begin(), row.keys.v.end(), fix);
    row.keys.finish(dtype_);
  }

  size_t at(int j, int i) const { return static_cast<size_t>(j) * static_cast<size_t>(d_) + i; }
  float gauss() { return normal_(random_); }
  int below(int limit) { return static_cast<int>(random_() % static_cast<uint64_t>(limit)); }
  float power(int low, int high) { return std::ldexp(1.0f, low + below(high - low + 1)); }

private:
  assay_dtype dtype_;
  int n_, d_;
  std::mt19937_64 &random_;
  std::normal_distribution<float> normal_;
};

void scale(std::vector<float> &values, float factor) {
  for (float &x : values)
    x *= factor;
}

void set_values(Regime regime, assay_dtype dtype, int n, int d, Draw &draw, RowData &row) {
  const bool half = dtype == ASSAY_FP16;
  std::vector<float> &v = row.keys.v;
  switch (regime) {
  case Regime::kLargeV:
    for (float &x : v)
      x = std::copysign(half ? 65504.0f : 0x1p110f, draw.below(8) ? 1.0f : x);
    break;
  case Regime::kShiftedV:
    for (float &x : v)
      x += 100.0f;
    break;
  case Regime::kSmallV:
    scale(v, 1e-3f);
    break;
  case Regime::kTinyV:
    scale(v, half ? 0x1p-16f : 0x1p-128f);
    break;
  case Regime::kOneHot:
    for (int j = 0; j < n; ++j) {
      for (int i = 0; i < d; ++i)
        v[draw.at(j, i)] = j % d == i ? 1.0f : 0.0f;
    }
    break;
  case Regime::kConstantV: {
    for (int i = 0; i < n * d; ++i)
      v[static_cast<size_t>(i)] = v[static_cast<size_t>(i % d)];
    break;
  }
  default:
    break;
  }
}

void set_keys(Regime regime, assay_dtype dtype, int n, int d, Draw &draw, RowData &row) {
  switch (regime) {
  case Regime::kScaled:
    scale(row.q, draw.power(-6, 6));
    scale(row.keys.k, draw.power(-6, 4));
    scale(row.keys.v, draw.power(-8, 8));
    break;
  case Regime::kRising: {
    const double slope = draw.power(-8, 2);
    draw.set_scores(
        row, [&](int j) { return slope * j; }, 0.05f);
    break;
  }
  case Regime::kFalling: {
    const double slope = draw.power(-8, 2);
    draw.set_scores(
        row, [&](int j) { return -slope * j; }, 0.05f);
    break;
  }
  case Regime::kDominant: {
    const int key = draw.below(n);
    const double height = 1 + draw.below(200);
    draw.set_scores(
        row, [&](int j) { return j == key ? height : 0.0; }, 0.1f);
    break;
  }
  case Regime::kTies:
    for (int j = 3; j < n; ++j) {
      const int source = draw.below(3);
      for (int i = 0; i < d; ++i)
        row.keys.k[draw.at(j, i)] = row.keys.k[draw.at(source, i)];
    }
    break;
  case Regime::kOffset: {
    const double size = draw.power(2, 10);
    const double offset = draw.below(2) ? size : -size;
    draw.set_scores(
        row, [&](int) { return offset; }, 0.02f);
    break;
  }
  case Regime::kHugeLogits: {
    const double size = std::pow(10.0, 2 + draw.below(4));
    draw.set_scores(
        row, [&](int) { return size * (draw.below(2001) - 1000) * 1e-3; }, 0.05f);
    break;
  }
  case Regime::kCancelling: {
    const float size = draw.power(0, dtype == ASSAY_FP16 ? 12 : 40);
    for (int j = 0; j < n; ++j) {
      for (int i = 0; i + 1 < d; i += 2) {
        row.q[static_cast<size_t>(i) + 1] = row.q[static_cast<size_t>(i)];
        const float x = row.keys.k[draw.at(j, i)] * size;
        row.keys.k[draw.at(j, i)] = x;
        row.keys.k[draw.at(j, i + 1)] = -x;
      }
    }
    break;
  }
  case Regime::kSubnormalQk:
    scale(row.q, dtype == ASSAY_FP16 ? 0x1p-16f : 0x1p-128f);
    scale(row.keys.k, dtype == ASSAY_FP16 ? 0x1p12f : 0x1p124f);
    break;
  case Regime::kIntegers:
    for (auto *values : {&row.q, &row.keys.k, &row.keys.v}) {
      for (float &x : *values)
        x = static_cast<float>(draw.below(5) - 2);
    }
    break;
  case Regime::kZeroQuery:
    std::fill(row.q.begin(), row.q.end(), 0.0f);
    break;
  default:
    break;
  }
}

} // namespace

RowData draw_row(Regime regime, assay_dtype dtype, int n, int d, std::mt19937_64 &random) {
  Draw draw(dtype, n, d, random);
  RowData row = draw.normal();
  set_keys(regime, dtype, n, d, draw, row);
  set_values(regime, dtype, n, d, draw, row);
  draw.finish(row);
  return row;
}

const char *regime_name(Regime regime) {
  static constexpr const char *kNames[] = {
      "normal",      "scaled",       "rising",     "falling", "dominant",   "ties",
      "offset",      "huge",         "cancelling", "large V", "V + 100",    "small V",
      "subnormal V", "subnormal qk", "integers",   "one-hot", "constant V", "zero query"};
  static_assert(sizeof kNames / sizeof kNames[0] == static_cast<size_t>(Regime::kCount));
  return kNames[static_cast<size_t>(regime)];
}

} // namespace assay::oracle::test
