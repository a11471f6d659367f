// SPDX-License-Identifier: Apache-2.0
// Internal: the bounds of a row once its sums over keys are known. Statements and proofs:
// oracle/BOUNDS.md, sections 3 and 6. One text for the host and for a GPU.
#pragma once

#include <cmath>

#include "oracle/bounds/row_numbers.h"

namespace assay::oracle {

/** Relative error of exp2 of the C library and of CUDA, with room; certified by the tests. */
inline constexpr double kExp2Error = 0x1p-50;
/** Exponent limit beyond which a weight may be flushed to zero somewhere on its way. */
inline constexpr double kFlushExponent = 124.0;
/** From here on a weight is nothing but underflow, whatever a kernel's error makes of it. */
inline constexpr double kCertainlyFlushed = 200.0;
/** Our own weights below 2^-1000 count as an absolute error. */
inline constexpr double kUnderflow = 1000.0;

/** Roundings of the fp32 steps after P.V, as relative errors. */
struct TailErrors {
  double pv;        ///< accumulation and rescaling of one state
  double partials;  ///< log of what merging states and splits adds: roundings, splits' reciprocals
  double merge;     ///< that, as a relative error
  double normalise; ///< row sum and last reciprocal, relative to the result
  double row_sum;   ///< |ln| of the final denominator over the exact one, at most
  double floor;     ///< absolute underflow, on the kernel's scale
};

/** A weight that enters a sum of a narrow format is rounded to it. One that enters a sum of rounded
    weights is rounded to P's format. Either happens once: the sum is off by the largest such error.
    What is subnormal there is off by a constant, in at most four roundings a key (entry, addition,
    rescaling of its lane, merge), of a sum that is at least half of what an exponential of 0 may be. */
ORACLE_HOST_DEVICE inline double row_sum_error(const ErrorModel &m, const RowShape &shape,
                                               double merges) {
  const double tiles = static_cast<double>(shape.tiles), all = static_cast<double>(shape.keys);
  // Each addition that may round brings a weight along: a path has no more of them than keys.
  const double additions = fmin(m.sum_depth * tiles, all);
  const double steps = additions + 2 * tiles + merges;
  const double splits = static_cast<double>(shape.stages) * shape.splits;
  const double in_blocks = static_cast<double>(shape.pv_blocks) * (m.block > 1 ? m.block : 1);
  const double keys = fmin(fmin(tiles * m.tile, all), in_blocks);
  const double constant =
      (4.0 * (keys * shape.states + merges) * m.sum_floor + keys * shape.states * m.entry_floor) /
      (0.5 * (1.0 - m.exp2)) * kSlack;
  const double lost = constant < 1.0 ? -log1p(-constant) : INFINITY;
  return lost - log1p(-m.entry_unit) - steps * log1p(-m.sum_unit) - splits * log1p(-kU);
}

ORACLE_HOST_DEVICE inline TailErrors tail_errors(const ErrorModel &m, const RowShape &shape) {
  const double log_u = log1p(kU);
  const double merges = shape.states > 1 ? shape.states + 1.0 : 0.0;
  const double tiles = static_cast<double>(shape.tiles);
  const double splits = shape.splits;
  TailErrors t{};
  t.pv = expm1(static_cast<double>(shape.pv_blocks) * log1p(m.kappa) + (tiles - 1) * log1p(m.unit));
  // P in two parts, where a kernel declares it, brings a second accumulator and a sum of the two.
  const int parts = m.p_format != nullptr ? 2 : 1;
  // A partial's own reciprocal is an error of its numerator alone: nothing in the row's denominator
  // takes it back, and it differs between splits.
  const double numerator = merges + (parts - 1) + shape.stages * (splits + 2);
  t.partials =
      numerator * log_u + shape.stages * log1p(m.rcp) + shape.stored * log1p(m.partial_unit);
  t.merge = (1.0 + t.pv) * expm1(t.partials);
  t.row_sum = row_sum_error(m, shape, merges);
  t.normalise = expm1(t.row_sum + log1p(m.rcp) + log_u);
  t.floor = kFloor * (parts * (3 * tiles + static_cast<double>(shape.pv_blocks) + 2 * merges) + 4 +
                      shape.stages * (2 * splits + 4));
  return t;
}

/** Exponentials that one key's weight meets: its own, the rescales, the merges. */
ORACLE_HOST_DEVICE inline double exp2_factors(const RowShape &shape) {
  return static_cast<double>(shape.tiles) + (shape.states > 1 ? 1.0 : 0.0) + shape.stages;
}

/** Limits of a kernel's row sums, on their own scale. The key at the maximum counts 2^(+-uX) within
    the error of one exponential, and is rescaled by ex2(0) = 1 from then on; no key counts more than
    that with all its factors at their upper end. */
ORACLE_HOST_DEVICE inline void bound_row_sums(RowNumbers &row) {
  const ErrorModel &m = row.model;
  const double roundings = tail_errors(m, row.shape).row_sum / kLn2;
  const double lost = -log1p(-m.exp2) / kLn2 + roundings;
  const double gained = exp2_factors(row.shape) * log1p(m.exp2) / kLn2 + roundings;
  const double rounded_max = 1.5 * kU * row.x_abs;
  row.sum_low = exp2(-rounded_max - lost) * 0.999;
  row.largest_weight = exp2(rounded_max + gained) * 1.01;
  row.log_sum =
      log2(static_cast<double>(row.facts.keys)) + fmax(lost, gained) + 2 * kU * row.x_abs + 0.01;
}

/** Why nothing is claimed about a row whose logits are known. */
enum class NoClaim { kNone, kLogits, kNarrowSum, kWeightLimit, kRoundings, kSumLimit };

/** Bounds the row's sums, if anything can be said of them. */
ORACLE_HOST_DEVICE inline NoClaim bound_sums(RowNumbers &row) {
  constexpr double kMaxRoundedLogit = 8.0;
  constexpr double kMaxNarrowSumLogit = 0.5; // a row sum is then at least half its largest weight
  constexpr double kMaxRowSumError = 8.0;
  // The maximum's own weight is 2^(rounding of c * m): beyond this it says nothing any more.
  if (kU * row.x_abs > kMaxRoundedLogit) return NoClaim::kLogits;
  if (row.model.sum_floor > 0.0 && kU * row.x_abs > kMaxNarrowSumLogit) return NoClaim::kNarrowSum;
  // The weight of the maximum is 1 but for its exponent's rounding and its exponential's error.
  const double largest = exp2(1.5 * kU * row.x_abs) * (1.0 + row.model.exp2) * kSlack;
  if (!(largest < row.model.p_limit)) return NoClaim::kWeightLimit;
  // Beyond e^8 a row sum says nothing; rows that long leave the range of every real kernel.
  if (!(tail_errors(row.model, row.shape).row_sum < kMaxRowSumError)) return NoClaim::kRoundings;
  bound_row_sums(row);
  const bool fits = static_cast<double>(row.facts.keys) * row.largest_weight < row.model.sum_limit;
  return fits ? NoClaim::kNone : NoClaim::kSumLimit;
}

/** Exponent error that LSE partials add to every key of a split, per merge stage. */
ORACLE_HOST_DEVICE inline double combine_exponent_error(const RowNumbers &row, double below_max) {
  const double lse = row.x_abs + row.log_sum;
  const ErrorModel &m = row.model;
  const double partial =
      kU * row.x_abs + kU * lse + m.log2 * (1.0 + row.log_sum) + m.conversion * row.log_sum;
  return (partial + (kU + m.conversion) * (below_max + 2 * row.log_sum + 1.0)) * kSlack;
}

/** Of an fp8 value times its scale in a wider format, or of an fp32 value. With fp8 there is none where the scale is a power
    of two, as fp8 has fewer bits, but for what falls below the format's smallest normal value (half
    a step). */
ORACLE_HOST_DEVICE inline double rounding_of_scaled(const RowFacts &facts, float scale) {
  int exponent = 0;
  const double fraction = fabs(frexp(static_cast<double>(scale), &exponent));
  const bool exact = facts.features.fp8 && facts.features.scale_blocks == 0 && fraction == 0.5;
  return exact ? 0.0 : facts.kv.unit_roundoff;
}

/** What V, rounded behind its scale, is off by, before v_scale. `magnitude`: sum of weights times |v|. */
ORACLE_HOST_DEVICE inline double value_rounding(const RowNumbers &row, double magnitude) {
  const double size = fabs(static_cast<double>(row.facts.features.v_scale));
  if (!row.facts.rounds_kv || size == 0.0) return 0.0;
  const double unit = rounding_of_scaled(row.facts, row.facts.features.v_scale);
  return (unit * magnitude + least_error(row.facts.kv) / size) * kSlack;
}

/** Underflow of single operations, of keys, of stored partials, and of the alignment of subnormal
    values, before v_scale. */
ORACLE_HOST_DEVICE inline double underflow_budget(const RowNumbers &row, const TailErrors &tail,
                                                  double largest_value) {
  double floor = tail.floor + static_cast<double>(row.facts.keys) * kFloor * largest_value;
  // A partial is stored before or after v_scale, which multiplies this. Rounded V has it inside.
  const double size = fabs(static_cast<double>(row.facts.features.v_scale));
  const bool rounded = row.facts.rounds_kv && size > 0.0;
  if (row.facts.v_subnormal || rounded) {
    floor += static_cast<double>(row.shape.pv_blocks) * row.model.alignment *
             row.model.operand_normal / (rounded ? fmin(size, 1.0) : 1.0);
  }
  const double stored = row.shape.stored * row.model.partial_floor;
  return floor / row.sum_low + (size > 0.0 ? stored * fmax(1.0, 1.0 / size) : stored);
}

/** An unnormalised output may reach keys * largest weight * largest value; then comes v_scale. */
ORACLE_HOST_DEVICE inline bool overflow_possible(const RowNumbers &row, double largest_value) {
  const double scaled = largest_value * fabs(static_cast<double>(row.facts.features.v_scale));
  const double summed = ldexp(static_cast<double>(row.facts.keys), row.model.p_scale_log2) *
                        row.largest_weight * largest_value;
  double limit = row.shape.stored > 0 ? row.model.partial_limit : kFp32Limit;
  if (row.facts.rounded_before_scale) limit = fmin(limit, row.facts.output.max_finite);
  return !(summed < kFp32Limit) || fmax(scaled, largest_value) * 1.01 >= limit;
}

ORACLE_HOST_DEVICE inline double errors_of(const BudgetTerms &t) { // but for its rounding
  return t.weights + t.p_rounding + t.accumulation + t.normalisation + t.merge + t.flush;
}

/** What rounding O to the format before that of its dtype is off by, of one that is at most `before`
    in front of its scales and `after` behind them. */
ORACLE_HOST_DEVICE inline double narrow_rounding(const RowFacts &facts, double before,
                                                 double after) {
  if (!facts.narrows) return 0.0;
  const double v = fabs(static_cast<double>(facts.features.v_scale)), o = facts.features.o_scale;
  const double between =
      fmax(half_ulp(facts.narrow, before) * v, half_ulp(facts.narrow, before * v));
  return fmax(half_ulp(facts.narrow, after), between / o);
}

/** O may leave that format: `o` and its budget are those of the output. */
ORACLE_HOST_DEVICE inline bool leaves_narrow(const RowFacts &facts, double largest_value,
                                             const Enclosure &o, const BudgetTerms &t) {
  if (!facts.narrows) return false;
  const double v = fabs(static_cast<double>(facts.features.v_scale)),
               stored = facts.features.o_scale;
  const double after = fabs(o.mid) + o.rad + t.total;
  const double before = v > 0.0 ? after * stored / v : largest_value;
  return !(fmax(after, before * fmax(1.0, v)) * 1.01 < facts.narrow.max_finite);
}

/** Sets output_rounding and total from the other terms; `magnitude` limits the exact |o|, `earlier`
    what a first rounding is off by. */
ORACLE_HOST_DEVICE inline void add_output_rounding(const Format &format, double magnitude,
                                                   BudgetTerms &t, double earlier = 0.0) {
  const double sum = errors_of(t);
  t.earlier_rounding = earlier;
  t.output_rounding = half_ulp(format, (magnitude + sum + earlier) * kSlack) + earlier;
  t.total = sum * kSlack + t.output_rounding;
}

/** What O is multiplied by before it is rounded. */
ORACLE_HOST_DEVICE inline double output_scale(const RowNumbers &row) {
  const double stored = row.facts.features.o_scale;
  return row.facts.features.v_scale / stored;
}

/** From the accumulator to the output: v_scale, then the rounding to the element type. Scales the
    enclosure and sets output_rounding and total from the other terms. */
ORACLE_HOST_DEVICE inline void finish_output(const RowNumbers &row, Enclosure &o, BudgetTerms &t) {
  const RowFacts &facts = row.facts;
  const double stored = facts.features.o_scale;
  const double scale = output_scale(row), size = fabs(scale);
  const double before = (fabs(o.mid) + o.rad + errors_of(t)) * kSlack;
  double first_rounding = 0.0; // before v_scale
  if (scale != 1.0) {
    if (facts.rounded_before_scale && facts.features.v_scale != 1.0f)
      first_rounding =
          size *
          half_ulp(facts.output, before + (facts.narrows ? half_ulp(facts.narrow, before) : 0.0));
    o.mid *= scale;
    o.rad = (o.rad * size + fabs(o.mid) * 3 * 0x1p-53) * kSlack + 0x1p-1000;
    t.weights *= size;
    t.p_rounding *= size;
    t.accumulation *= size;
    t.normalisation *= size;
    t.merge *= size;
    t.flush *= size;
    const double error = t.weights + t.p_rounding + t.accumulation + t.normalisation + t.merge;
    // One rounding of a product with the scale; a division may be an inverse and one more product.
    t.normalisation += (stored == 1.0 ? 1 : 3) * kU * kSlack * (fabs(o.mid) + o.rad + error);
    t.flush += kFloor;
  }
  const double after = (fabs(o.mid) + o.rad + errors_of(t) + first_rounding) * kSlack;
  const double rounded = facts.rounded_before_scale ? half_ulp(facts.output, before) : 0.0;
  first_rounding += narrow_rounding(facts, before + rounded, after);
  add_output_rounding(facts.output, fabs(o.mid) + o.rad, t, first_rounding);
}

/** Sums over the keys of a row, for one component of V. Weights are on the scale 2^-x_max. */
struct ColumnSums {
  double value;     ///< sum w v
  double magnitude; ///< sum w (1 + omega) |v|
  double subnormal; ///< error of P where it may be subnormal
  double centered;  ///< sum w omega |v - o|, o as `enclosure` below gives it
  double v_min, v_max;

  ORACLE_HOST_DEVICE double largest() const { return fmax(fabs(v_min), fabs(v_max)); }
};

/** The exact output before its scale. `centered` and `subnormal` need not be known. */
ORACLE_HOST_DEVICE inline Enclosure enclose_column(const RowNumbers &row, const ColumnSums &sums) {
  const double limit = sums.largest();
  if (row.coarse) return {0.0, limit * (1.0 + row.kv_unit)};
  const double mean = fmin(sums.magnitude / row.z, limit); // >= sum pi |v|
  const double weights = fmin(row.weight_error * 2 * mean, row.mass_error * 2 * limit);
  const double steps = static_cast<double>(row.facts.keys) + 8;
  return {sums.value / row.z,
          (1.01 * weights + (4 * steps * 0x1p-53 + row.kv_unit) * mean + 0x1p-500 * limit) *
                  kSlack +
              0x1p-1000};
}

struct ColumnBounds {
  double convex;    ///< |any convex combination of v - o|
  double magnitude; ///< sum of effective weights times |v|
  double subnormal;
  double weights;
};

ORACLE_HOST_DEVICE inline ColumnBounds bound_column(const RowNumbers &row, const ColumnSums &sums,
                                                    const Enclosure &o) {
  const double limit = sums.largest();
  ColumnBounds b{};
  b.convex = fmax(sums.v_max - o.mid, o.mid - sums.v_min) + o.rad + row.kv_unit * limit;
  b.magnitude = limit;
  b.subnormal = sums.subnormal;
  b.weights = b.convex;
  const double sum = row.z * row.mass_low;
  if (!row.coarse && !row.vague && sum > 0.0) {
    b.magnitude = fmin(sums.magnitude / sum * kSlack, limit);
    b.weights =
        fmin((sums.centered / sum + o.rad * row.omega_mean / row.mass_low) * kSlack, b.convex);
  }
  if (row.coarse || row.vague)
    b.subnormal = fmin(b.subnormal, static_cast<double>(row.facts.keys) * limit);
  return b;
}

/** T0 of one component. `o`: as enclose_column gives it; becomes that of the output. */
ORACLE_HOST_DEVICE inline BudgetTerms budget_of(const RowNumbers &row, const TailErrors &tail,
                                                const ColumnSums &sums, Enclosure &o) {
  constexpr double kLargestQuantised = 1024.0; // above every value of e4m3 and int8
  const ErrorModel &m = row.model;
  const ColumnBounds b = bound_column(row, sums, o);
  const double limit = sums.largest();
  BudgetTerms t;
  t.weights = b.weights;
  t.p_rounding = m.p_unit * b.magnitude + b.subnormal;
  const double magnitude = (1.0 + m.p_unit) * b.magnitude + b.subnormal;
  t.accumulation =
      (tail.pv + 2 * row.kv_unit) * magnitude + // a weight times the scale of its value
      value_rounding(row, magnitude) * (1.0 + tail.pv);
  const double result = fabs(o.mid) + o.rad + b.weights;
  const double numerator = t.p_rounding + t.accumulation;
  t.normalisation = tail.normalise * (result + numerator);
  t.merge = tail.merge * magnitude * (1.0 + tail.normalise);
  t.flush = underflow_budget(row, tail, limit);
  if (row.kv_unit > 0.0)
    t.flush += static_cast<double>(row.facts.keys) * kFloor * kLargestQuantised / row.sum_low;
  finish_output(row, o, t);
  t.overflow_possible = overflow_possible(row, limit) || leaves_narrow(row.facts, limit, o, t);
  // What a store makes of values that fp8 has no room for is not said.
  if (row.facts.output_fp8 && fabs(o.mid) + o.rad + t.total >= row.facts.output.max_finite)
    t.overflow_possible = true;
  return t;
}

/** |LSE error| in base 2, of the declared arithmetic; then in the declared base. */
ORACLE_HOST_DEVICE inline double lse_budget(const RowNumbers &row, double lse2) {
  const TailErrors tail = tail_errors(row.model, row.shape);
  // LSE moves by no more than the exponents do; and it is at least the largest key's own, which is
  // within log2 n of it.
  const double above = fmin(log1p(row.omega_mean) / kLn2, row.log_omega_max);
  const double largest_alone = log2(static_cast<double>(row.facts.keys)) + row.x_error_max +
                               2 * kU * row.x_abs - log1p(-row.model.exp2) / kLn2;
  const double weights = fmax(above, fmin(-log2(row.mass_low), largest_alone));
  const double rounded_max = row.shape.stages > 0 ? 0.0 : kU * row.x_abs;
  double bound = weights + row.scale_error * row.x_abs + tail.row_sum / kLn2 + rounded_max +
                 row.model.log2 * (1.0 + row.log_sum) + row.model.conversion * row.log_sum;
  bound += kU * (fabs(lse2) + bound);
  // From one base to the other, an fp32 constant and the product: at most one rounding each.
  if (row.facts.natural_lse || row.model.conversion > 0.0) bound += 2 * kU * (fabs(lse2) + bound);
  if (row.facts.natural_lse) bound *= kLn2;
  return bound * kSlack + kFloor;
}

/** `worst`: the largest error of a key's weight, in the exponent. `lse2`: the LSE in base 2. */
ORACLE_HOST_DEVICE inline Enclosure lse_enclosure(const RowNumbers &row, double worst,
                                                  double *lse2) {
  const double n = static_cast<double>(row.facts.keys);
  // A weighted mean of factors 2^(+-r_j): at most the largest r_j, and at most its mean when small.
  const double weights = row.mass_error < 0.25 ? fmin(worst, 2.0 * row.mass_error) : worst;
  *lse2 = row.x_max + log2(row.z);
  Enclosure result{*lse2, weights + (2 * n + 8) * 0x1p-53 + 8 * 0x1p-53 * fabs(row.x_max) +
                              16 * 0x1p-53 * (1.0 + fabs(log2(row.z)))};
  if (row.facts.natural_lse) result = {*lse2 * kLn2, result.rad * kLn2 + 4 * 0x1p-53 * fabs(*lse2)};
  result.rad *= kSlack;
  return result;
}

} // namespace assay::oracle
