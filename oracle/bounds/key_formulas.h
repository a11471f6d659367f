// SPDX-License-Identifier: Apache-2.0
// Internal: one key of a row: its logit, what a kernel's may be off by, and its weight's Omega.
// oracle/BOUNDS.md, sections 2, 3 and 6. One text for the host and for a GPU.
#pragma once

#include <cmath>

#include "oracle/bounds/row_formulas.h"

namespace assay::oracle {

/** A base-2 logit, how well it is known, and what the kernel's may be off by. */
struct Logit {
  double x = 0.0, radius = 0.0, error = 0.0;
};

/** q.k of a key: the sum of its products and that of their magnitudes, as evaluated here. */
struct Score {
  double value, magnitude;
};

ORACLE_HOST_DEVICE inline bool normal_fp32(double x) { return x > 2 * kFloor && x < kFp32Limit; }

/** Q meets K times any part of what scales its scores. What is absolute of the kernel's is then
    larger here, and ranges end earlier. False when Q may leave its format. */
ORACLE_HOST_DEVICE inline bool scale_declared_query(RowNumbers &row, float sm_scale,
                                                    double largest) {
  const RowFeatures &features = row.facts.features;
  ErrorModel &m = row.model;
  double least = 1.0, most = kLog2E;
  const float factors[] = {sm_scale, features.k_scale, features.q_scale};
  for (const float factor : factors) {
    least *= fmin(1.0, fabs(static_cast<double>(factor)));
    most *= fmax(1.0, fabs(static_cast<double>(factor)));
  }
  row.q_error = row.q_error * (1.0 + m.q_unit) + m.q_floor / least;
  row.q_least = fmax(row.q_least, m.q_normal) / least;
  m.dot_floor /= least;
  m.product_floor /= least;
  m.score_floor /= least;
  m.score_limit /= most;
  m.qk_limit /= most;
  // Products of elements before the scales of their tokens have other ranges.
  if (m.product_unit > 0.0 && features.scale_blocks > 0) return false;
  return (largest + row.q_error) * most * 1.01 < m.q_limit;
}

/** The scale, and what becomes of Q, whose largest magnitude is `largest`; false when the kernel's
    scale may leave the fp32 range, or Q its format. */
ORACLE_HOST_DEVICE inline bool scale_query(RowNumbers &row, float sm_scale, bool bf16_query,
                                           double largest) {
  const RowFeatures &features = row.facts.features;
  row.q_least = ldexp(1.0, row.facts.operand.min_exponent);
  const double scale = static_cast<double>(sm_scale) * kLog2E;
  row.scale = static_cast<double>(sm_scale) * features.k_scale * features.q_scale * kLog2E;
  row.kv_unit = features.scale_blocks > 0 ? kU * kSlack : 0.0;
  row.scale_error = kScaleError + (features.fp8 ? kU : 0.0) + (features.q_scaled ? kU : 0.0);
  if (!normal_fp32(scale) || !normal_fp32(row.scale)) return false;
  row.q_error = row.model.q_error * largest;
  if (row.model.scales_query) return scale_declared_query(row, sm_scale, largest);
  if (row.facts.rounds_kv || !features.fp8 || largest == 0.0) return true;
  // Q is multiplied by 2^(14 - e), the scale by its inverse.
  const int exponent = ilogb(largest);
  const double undo = ldexp(1.0, exponent - 14);
  const double least = row.q_least * undo;
  // An fp16 or fp8 query may stay as it is: the larger of the two covers both.
  row.q_least = bf16_query ? least : fmax(row.q_least, least);
  row.model.dot_floor *= fmax(1.0, undo);
  row.model.score_floor *= fmax(1.0, undo);
  row.model.score_limit *= fmin(1.0, undo);
  return normal_fp32(row.scale * undo);
}

/** How far cap * tanh(y / cap) moves when y moves by `change`: its slope falls with |y|. */
ORACLE_HOST_DEVICE inline double moved_by(double y, double cap, double change) {
  const double nearest = fmax(0.0, fabs(y) - change) / cap;
  const double root = 1.0 / cosh(fmin(nearest, 700.0));
  return change * fmin(1.0, root * root * kSlack);
}

ORACLE_HOST_DEVICE inline Logit softcapped(const Logit &y, double cap, double tanh_error) {
  constexpr double kTanhError = 0x1p-50; // covers both libraries, with room; certified by the tests
  Logit capped;
  capped.x = cap * tanh(y.x / cap);
  const double size = fabs(capped.x);
  capped.radius = moved_by(y.x, cap, y.radius + fabs(y.x) * 4 * 0x1p-53) +
                  size * (kTanhError + 8 * 0x1p-53) + cap * 0x1p-300;
  capped.error = moved_by(y.x, cap, y.error + y.radius) + cap * tanh_error;
  capped.error += 4 * kU * (size + capped.error) + kFloor;
  return capped;
}

/** From a scaled score to the logit the softmax sees: softcap, ALiBi. `distance`: key position less
    query position. */
ORACLE_HOST_DEVICE inline Logit map_logit(const RowNumbers &row, const Logit &scaled,
                                          double distance) {
  const RowFeatures &features = row.facts.features;
  if (!(features.softcap > 0.0f || features.alibi)) return scaled;
  Logit logit = scaled;
  // The kernel's own product: its scale's error, and one rounding.
  logit.error += (row.scale_error + kU) * (fabs(scaled.x) + scaled.error) + kFloor;
  if (features.softcap > 0.0f)
    logit = softcapped(logit, static_cast<double>(features.softcap) * kLog2E, row.model.tanh);
  if (features.alibi) {
    const double bias = static_cast<double>(features.slope) * distance * kLog2E;
    logit.x += bias;
    logit.radius += (fabs(bias) + fabs(logit.x)) * 4 * 0x1p-53;
    logit.error += 3 * kU * fabs(bias) + kFloor;
    logit.error += kU * (fabs(logit.x) + logit.error);
  }
  logit.radius *= kSlack;
  logit.error *= kSlack;
  return logit;
}

/** What a kernel holds for a sink: fl(sink * log2 e). */
ORACLE_HOST_DEVICE inline Logit sink_logit(const RowFeatures &features) {
  const double x = static_cast<double>(features.sink) * kLog2E;
  return {x, fabs(x) * 4 * 0x1p-53, kScaleError * fabs(x) * kSlack + kFloor};
}

/** `excess`: what subnormal operands add to the magnitude that addends are aligned by;
    `key_magnitude`: sum |k_i|, needed where Q has errors. `exact`: the score is the kernel's own,
    without error (T2). */
struct KeyFacts {
  double excess = 0.0, key_magnitude = 0.0;
  double distance = 0.0; ///< key position less query position
  int head_dim = 0;
  bool exact = false;
};

/** What the operands' errors make of a score, before their products are summed. */
ORACLE_HOST_DEVICE inline double operand_error(const RowNumbers &row, const Score &s,
                                               const KeyFacts &key) {
  const ErrorModel &m = row.model;
  double error = m.q_unit * s.magnitude;
  if (row.q_error > 0.0) error += row.q_error * key.key_magnitude;
  if (row.facts.rounds_kv) {
    const float scale = row.facts.features.k_scale;
    const double unit = rounding_of_scaled(row.facts, scale);
    const double least = least_error(row.facts.kv) / scale;
    error += (1.0 + m.q_unit) * (unit * s.magnitude + least * row.q_sum) +
             row.q_error * (unit * key.key_magnitude + least * key.head_dim);
  }
  return error * kSlack;
}

/** Any partial sum of a score, in any order, is at most the positive or the negative products
    together. */
ORACLE_HOST_DEVICE inline double partial_sum(const Score &s) {
  return 0.5 * (s.magnitude + fabs(s.value)) * kSlack;
}

/** The kernel's score error, before the scale. */
ORACLE_HOST_DEVICE inline double score_error(const RowNumbers &row, const Score &s,
                                             const KeyFacts &key) {
  const ErrorModel &m = row.model;
  double error = operand_error(row, s, key);
  error += (m.product_unit * (s.magnitude + error) + m.product_floor) * kSlack;
  return m.dot * (partial_sum(s) + key.excess + error) + error + m.dot_floor;
}

/** A score in its declared format; false when it may be infinite there. */
ORACLE_HOST_DEVICE inline bool add_score_rounding(const RowNumbers &row, const Score &s,
                                                  Logit &logit) {
  const ErrorModel &m = row.model;
  if (m.score_unit == 0.0) return true;
  logit.error = (logit.error + m.score_unit * (fabs(logit.x) + logit.error) +
                 m.score_floor * fmax(row.scale, kLog2E)) *
                kSlack;
  const double size = fmax(fabs(s.value) + logit.error / row.scale, fabs(logit.x) + logit.error);
  return size * 1.01 < m.score_limit;
}

/** False when fp32 may overflow. */
ORACLE_HOST_DEVICE inline bool key_logit(const RowNumbers &row, const Score &s, const KeyFacts &key,
                                         Logit &logit) {
  logit.x = row.scale * s.value;
  logit.radius = ((key.exact ? 0.0 : row.scale * key.head_dim * 0x1p-53 * s.magnitude) +
                  fabs(logit.x) * 4 * 0x1p-53) *
                 kSlack;
  logit.error = key.exact ? 0.0 : row.scale * score_error(row, s, key) * kSlack;
  if (row.model.scales_query &&
      !((partial_sum(s) + logit.error / row.scale) * 1.01 < row.model.qk_limit))
    return false;
  // Ours is of elements that were rounded once; a kernel's rounds a block's sum, and adds blocks.
  logit.radius += row.scale * row.kv_unit * s.magnitude * kSlack;
  logit.error += row.scale * row.kv_unit * (1 + row.facts.features.scale_blocks) *
                 (1.0 + row.model.q_unit) * s.magnitude * kSlack;
  if (!add_score_rounding(row, s, logit)) return false;
  // Scaled queries keep scores of fp8 keys far inside the range.
  if (!row.facts.features.fp8 && !(s.magnitude < kFp32Limit)) return false;
  if (!(fabs(logit.x) + logit.error < kFp32Limit)) return false;
  logit = map_logit(row, logit, key.distance);
  return fabs(logit.x) + logit.error < kFp32Limit;
}

/** expm1, for small arguments (most of those that bounds are made of) by its series. */
ORACLE_HOST_DEVICE inline double fast_expm1(double y) {
  if (!(fabs(y) < 0x1p-8)) return expm1(y);
  // The term left out is below y^7 / 5040 < 2^-60 |y|.
  return y * (1 + y * (1.0 / 2) *
                      (1 + y * (1.0 / 3) *
                               (1 + y * (1.0 / 4) * (1 + y * (1.0 / 5) * (1 + y * (1.0 / 6))))));
}

inline constexpr double kShrink = 1.0 - 0x1p-20; ///< at most 1 / kSlack

/** A key on the scale 2^-x_max: its weight, how well that is known, and what a kernel's may be. */
struct KeyWeight {
  double weight = 0.0;
  double error = 0.0; ///< relative error of `weight`
  double omega = 1.0; ///< relative error of the kernel's effective weight
  double low = 0.0;   ///< lower limit of a kernel's effective weight; 0: may be flushed
  double log_omega = 0.0;
  bool vague = false; ///< may be anything
};

ORACLE_HOST_DEVICE inline void weigh_key(double x_max, const Logit &logit, KeyWeight &key) {
  const double below = x_max - logit.x;
  key.weight = below > kUnderflow ? 0.0 : exp2(-below);
  key.error = fast_expm1(kLn2 * (logit.radius + below * 0x1p-53)) + kExp2Error;
}

/** What the Omega of a row's keys has in common. */
struct OmegaRow {
  double up, down, shared;
  double log_up; ///< log2 of what `up` is of
};
ORACLE_HOST_DEVICE inline OmegaRow omega_row(const RowNumbers &row) {
  const double factors = exp2_factors(row.shape);
  // One rounding of c * m; where states merge, maxima may have been rounded on both sides once
  // more.
  const double roundings = row.shape.states > 1 ? 3.0 : 1.0;
  const double up = factors * log1p(row.model.exp2);
  return {up, factors * log1p(-row.model.exp2), roundings * kU * row.x_abs + 0x1p-100, up / kLn2};
}

/** Omega of section 3: error of a key's effective weight, up to a common factor, and the factor's
    lower limit. An exponential that is always low by eps_x gives (1 - eps_x)^R, which is less than
    1 / (1 + Omega). */
ORACLE_HOST_DEVICE inline void bound_key(const RowNumbers &row, const OmegaRow &common,
                                         const Logit &logit, KeyWeight &key) {
  constexpr double kVagueWeight = 0x1p64;
  const ErrorModel &m = row.model;
  const double score = logit.error + logit.radius;
  const double below = row.x_max - logit.x + score + row.x_error_max;
  double eta = score + (row.scale_error + 2 * kU + m.conversion) * kSlack * below + common.shared;
  if (row.shape.stages > 0) eta += row.shape.stages * combine_exponent_error(row, below);
  eta *= kSlack;
  if (row.x_max - logit.x - eta > kCertainlyFlushed) return;
  key.omega = fast_expm1(kLn2 * eta + common.up) * kSlack;
  const bool flushed = below + eta >= kFlushExponent;
  if (flushed) key.omega = fmax(key.omega, 1.0);
  if (!flushed) key.low = key.weight * (1.0 + fast_expm1(common.down - kLn2 * eta)) * kShrink;
  key.log_omega = eta + common.log_up;
  // Beyond this a weight may be anything: only convexity is left, which needs no Omega.
  key.vague = !(key.omega < kVagueWeight);
  key.omega = fmin(key.omega, kVagueWeight);
}

/** P is rounded to a format that may hold it as a subnormal number above every budget's floor. */
ORACLE_HOST_DEVICE inline bool may_be_subnormal(const ErrorModel &m) {
  return m.p_format != nullptr && m.p_normal > 2 * kFloor;
}

/** What rounding P is off by where it may be subnormal, as a coefficient of |v|, on the scale of
    the normalised weights. `mass_low`: at most the row's; `slack`: as subnormal_slack gives it. */
ORACLE_HOST_DEVICE inline double subnormal_slack(const RowNumbers &row) {
  return exp2(2 * row.x_error_max + 2 * kU * row.x_abs) * kSlack;
}
struct SubnormalCost {
  double rounding = 0.0;  ///< of the key: the same for every component of V
  double alignment = 0.0; ///< of a product
};
/** A kernel's row sum at least, where P may be subnormal. */
ORACLE_HOST_DEVICE inline double subnormal_sum(const RowNumbers &row, double slack, double z,
                                               double mass_low) {
  return row.shape.splits == 1 ? fmax(z * mass_low / slack, row.sum_low) : row.sum_low;
}
ORACLE_HOST_DEVICE inline SubnormalCost subnormal_cost(const RowNumbers &row, double slack,
                                                       double z, double mass_low,
                                                       const KeyWeight &key) {
  const ErrorModel &m = row.model;
  if (key.low >= m.p_normal * slack) return {};
  const double sum = subnormal_sum(row, slack, z, mass_low);
  const double w = key.weight * (1.0 + key.omega);
  const double mass = mass_low > 0.0 ? w / (z * mass_low) : 1.0;
  return {fmin(mass, m.p_floor / sum), m.alignment * m.p_normal / sum};
}
ORACLE_HOST_DEVICE inline double subnormal_coefficient(const RowNumbers &row, double slack,
                                                       double z, double mass_low,
                                                       const KeyWeight &key) {
  const SubnormalCost cost = subnormal_cost(row, slack, z, mass_low, key);
  return cost.rounding + cost.alignment;
}

} // namespace assay::oracle
