// SPDX-License-Identifier: Apache-2.0
// Internal: T1 and T2 of a row, key by key, component by component. Statements and
// proofs: oracle/BOUNDS.md, section 4. One text for the host and for a GPU.
#pragma once

#include "oracle/bounds/replay_tiles.h"

namespace assay::oracle {

inline constexpr double kFloatExp2 = 0x1p-48; ///< exp2 and products of this evaluation, with room

/** One rounding or the sum of two parts: monotone both, since at a tie of the first part the second
    is half a step up or half a step down. */
ORACLE_HOST_DEVICE inline double round_weight(const Format &format, int scale_log2, double p,
                                              bool two_parts) {
  const double up = ldexp(1.0, scale_log2), down = ldexp(1.0, -scale_log2);
  const double first = round_to(format, p * up) * down;
  return two_parts ? first + round_to(format, (p - first) * up) * down : first;
}

/** The kernel's rounded P is within `gap` of `p`: with one candidate, exactly it; with several,
    their middle is the reference, which costs half of what either end would. */
struct Rounded {
  double p, gap;
};
ORACLE_HOST_DEVICE inline Rounded round_window(const Format &format, int scale_log2, double p,
                                               double window, bool two_parts) {
  const double low = p * (1.0 - window);
  const double high = round_weight(format, scale_log2, p * (1.0 + window), two_parts);
  const double least =
      low < 2 * kFloor ? 0.0 : round_weight(format, scale_log2, low, two_parts); // or flushed
  return {0.5 * (least + high), 0.5 * (high - least)};
}

/** What a tile's keys have in common. */
struct TileErrors {
  double omega; ///< exponent error and exp2 factors that its share meets after its P was computed
  double scale; ///< factor from its weights to the row's scale, over Z
  double parts; ///< two parts: an accumulator each, and the sum of both
  double steps; ///< rounding errors of P.V from it on
};
ORACLE_HOST_DEVICE inline TileErrors tile_errors(const RowNumbers &row, double partials,
                                                 const TileView &tile, const ReplayScale &scale) {
  const ErrorModel &m = row.model;
  const double below = -tile.top + tile.deviation + row.x_error_max;
  double eta = (row.scale_error + 2 * kU + m.conversion) * below;
  if (scale.reference) {
    eta += tile.reference ? 0.0 : tile.deviation + scale.deviation;
  } else {
    eta += tile.deviation;
  }
  // Maxima stored scaled bring the roundings of c * m into the rescales; rounded P does not take
  // them back, so they do not cancel as in T0. Without a rescale to come there is nothing to round.
  if (row.shape.states > 1 || tile.grows_after > 0) eta += 2 * kU * row.x_abs;
  eta += row.shape.stages * combine_exponent_error(row, below);
  const double factors = tile.grows_after + (row.shape.states > 1 ? 1.0 : 0.0) + row.shape.stages;
  const double omega = expm1(kLn2 * eta * kSlack + factors * log1p(m.exp2));
  TileErrors errors{};
  errors.omega = below > kFlushExponent ? fmax(omega, 1.0) : omega;
  errors.scale = exp2(fmax(tile.top, -1000.0)) / row.z;
  errors.parts = tile.two_parts ? 1.0 + 2 * m.p_unit : 1.0;
  errors.steps = errors.parts * expm1(static_cast<double>(tile.blocks) * log1p(m.kappa) +
                                      tile.grows_after * log1p(m.unit) + partials);
  return errors;
}

/** A key in the replay. On the row's scale, over Z, from `rho` on. */
struct ReplayedKey {
  double p = 0.0;            ///< rounded weight on its tile's scale
  double rho = 0.0;          ///< that
  double ambiguity = 0.0;    ///< multiplies |v|
  double rescale = 0.0;      ///< rho Omega^alpha
  double rescale_mass = 0.0; ///< pi Omega^alpha
  double accumulate = 0.0;   ///< rounding errors of P.V from its tile on: multiplies |v|
  double denominator = 0.0, mass_lost = 0.0; ///< its share of these sums
  bool ambiguous = false;
  bool vague = false; ///< may be anything: nothing else holds
};
ORACLE_HOST_DEVICE inline ReplayedKey replay_key(const RowNumbers &row, const Format &p_format,
                                                 const TileView &tile, const TileErrors &errors,
                                                 const Logit &logit, double weight) {
  const ErrorModel &m = row.model;
  ReplayedKey key;
  const double y = logit.x - row.x_max;
  const double below = tile.top - y;
  const double own = logit.radius + (fabs(y) + below) * 2 * kU53;
  const double score = logit.error + tile.deviation;
  const double eta =
      own + score + (row.scale_error + 2 * kU + m.conversion) * (below + score) + kU * row.x_abs;
  double window = (1.0 + m.exp2) * (1.0 + kFloatExp2) * exp(kLn2 * eta * kSlack) - 1.0;
  const double p = exp2(-fmin(below, 1000.0));
  // A weight that may be far above 1, or beyond its format (448 in e4m3, and weights may be scaled
  // to 256), is one that nothing is known of: it has no candidates.
  const double most = p * (1.0 + window);
  if (!(most <= 2.0 && most < m.p_limit)) {
    key.vague = true;
    return key;
  }
  const Rounded rounded = round_window(p_format, m.p_scale_log2, p, window, tile.two_parts);
  if (p * (1.0 - window) < 2 * kFloor) window = fmax(window, 1.0);
  const double omega = errors.omega, mass = weight / row.z;
  key.p = rounded.p;
  key.rho = rounded.p * errors.scale;
  key.ambiguity = rounded.gap * errors.scale * (1.0 + omega);
  key.rescale = key.rho * omega;
  key.rescale_mass = mass * omega;
  key.accumulate = errors.steps * (key.rho * (1.0 + omega) + key.ambiguity);
  // A subnormal P is aligned by the exponent of the smallest normal one. A second part may be one
  // whatever P is.
  if (tile.two_parts || rounded.p - rounded.gap < m.p_normal)
    key.accumulate += errors.parts * m.alignment * m.p_normal * errors.scale;
  key.denominator = mass * window * (1.0 + omega);
  key.mass_lost = mass * ((1.0 + window) * (1.0 + omega) - 1.0);
  key.ambiguous = rounded.gap > 0.0;
  return key;
}

/** What the keys of a replayed row come to. */
struct ReplayNumbers {
  double denominator = 0.0; ///< mean of Omega^pre: multiplies |o'|
  double mass_low = 1.0;
  bool two_parts = false; ///< some tile has P in two parts

  ORACLE_HOST_DEVICE bool informative(const RowNumbers &row, bool vague) const {
    return !row.coarse && !row.vague && !vague && mass_low > 0.5;
  }
};

/** Sums over the keys, for one component of V: rho v, and |v| times the other coefficients. */
struct ReplaySums {
  double value, magnitude, ambiguous, accumulated;
  double rescaled; ///< sum |rescale v - rescale_mass value|
  double largest;  ///< |v|
};

ORACLE_HOST_DEVICE inline Enclosure replayed_column(const RowNumbers &row, const ReplaySums &sums) {
  const double own =
      kFloatExp2 + 1.01 * row.mass_error + 4 * (static_cast<double>(row.facts.keys) + 8) * kU53;
  return {sums.value, (own * sums.magnitude + 0x1p-500 * sums.largest) * kSlack + 0x1p-1000};
}

/** `o`: as replayed_column gives it; becomes that of the output. */
ORACLE_HOST_DEVICE inline BudgetTerms replay_budget(const RowNumbers &row, const TailErrors &tail,
                                                    const ReplayNumbers &replay,
                                                    const ReplaySums &sums, Enclosure &o) {
  const double result = fabs(sums.value) + o.rad;
  BudgetTerms t;
  t.weights = (sums.rescaled + result * replay.denominator) / replay.mass_low * kSlack;
  t.p_rounding = sums.ambiguous / replay.mass_low * kSlack;
  t.accumulation =
      (sums.accumulated / replay.mass_low +
       value_rounding(row, (sums.magnitude + sums.ambiguous) / replay.mass_low) * (1.0 + tail.pv)) *
      kSlack;
  const double sum = result + t.weights + t.p_rounding + t.accumulation;
  t.normalisation = tail.normalise * sum;
  t.flush = (replay.two_parts ? 2 : 1) * underflow_budget(row, tail, sums.largest);
  finish_output(row, o, t);
  t.overflow_possible =
      overflow_possible(row, sums.largest) || leaves_narrow(row.facts, sums.largest, o, t);
  return t;
}

} // namespace assay::oracle
