// SPDX-License-Identifier: Apache-2.0
// Internal: a merge of states, state by state, component by component. Statements and proofs:
// oracle/BOUNDS.md, section 5. One text for the host and for a GPU.
#pragma once

#include "oracle/bounds/joint_formulas.h"

namespace assay::oracle {

/** Of a call of merges. */
struct MergeFacts {
  double exp2 = 0.0, log2 = 0.0, rcp = 0.0; ///< errors that the kernel declares
  bool natural = true;                      ///< base of the LSEs
  bool natural_exponential = false;
  bool rounds = false; ///< outputs are rounded, to `output`
  Format output{};
};

/** What the live states of a row come to. */
struct MergeNumbers {
  double states = 0.0; ///< how many
  double top = 0.0, z = 0.0, mass_error = 0.0, omega_mean = 0.0, mass_low = 0.0;
  double log_omega_max = 0.0; ///< log2 of the largest 1 + omega
};

/** A live state's weight, and its share of what the row's sums are made of. */
struct StateWeight {
  double weight = 0.0, omega = 1.0; ///< omega: relative error of the kernel's weight
  double error = 0.0, mean = 0.0, low = 0.0;
  double log_omega = 0.0;
};

/** log2 of a weight is off by the rounded difference and, in natural base, by the product with the
    fp32 constant log2(e). */
ORACLE_HOST_DEVICE inline StateWeight weigh_state(const MergeFacts &facts, double top, double lse) {
  const double to_base2 = facts.natural ? kLog2E : 1.0;
  // A kernel of the other base converts the difference, and its exponential converts it back.
  const bool other = facts.natural_exponential && !facts.natural;
  const double relative = kU + (facts.natural ? kScaleError : other ? 2 * kScaleError : 0.0);
  const double below = (top - lse) * to_base2;
  StateWeight state;
  // Its weight is within underflow of 0, exact and computed.
  if (below > kCertainlyFlushed) return state;
  state.weight = ::exp2(-below);
  const double eta = below * relative * kSlack + kFloor;
  state.omega = expm1(kLn2 * eta + log1p(facts.exp2)) * kSlack;
  state.log_omega = eta + log1p(facts.exp2) / kLn2;
  const bool flushed = below >= kFlushExponent;
  if (flushed) state.omega = fmax(state.omega, 1.0);
  state.error = state.weight * (expm1(kLn2 * below * 4 * 0x1p-53) + 0x1p-50);
  state.mean = state.weight * state.omega;
  // An exponential that is always low gives 1 - eps_x, which is less than 1 / (1 + omega).
  if (!flushed) state.low = state.weight * exp(log1p(-facts.exp2) - kLn2 * eta) / kSlack;
  return state;
}

/** From sums of `error`, `mean` and `low`, with z known. */
ORACLE_HOST_DEVICE inline void finish_merge(MergeNumbers &row, double error, double mean,
                                            double low) {
  row.mass_error = error / row.z * kSlack;
  row.omega_mean = mean / row.z * kSlack;
  row.mass_low = low / row.z / kSlack;
}

/** The LSE; returns its budget. */
ORACLE_HOST_DEVICE inline double merged_lse(const MergeFacts &facts, const MergeNumbers &row,
                                            Enclosure &lse) {
  const double n = row.states;
  const double from_base2 = facts.natural ? kLn2 : 1.0;
  const double tail = ::log2(row.z);
  lse.mid = row.top + tail * from_base2;
  lse.rad = (from_base2 * (2 * row.mass_error + (2 * n + 8) * 0x1p-53 + 16 * 0x1p-53 * fabs(tail)) +
             4 * 0x1p-53 * (fabs(lse.mid) + fabs(row.top))) *
            kSlack;
  const double weights =
      fmax(fmin(log1p(row.omega_mean) / kLn2, row.log_omega_max), -::log2(row.mass_low));
  double bound = weights + (n + 1) * kU / kLn2 + facts.log2 * (1.0 + tail + weights + 0.01);
  // The constant and the product; a logarithm of the other base adds its own.
  const double conversions =
      (facts.natural ? 2 * kU : 0.0) + (facts.natural_exponential ? 2 * kScaleError : 0.0);
  bound += conversions * (tail + bound);
  if (facts.natural) bound *= kLn2;
  bound += kU * (fabs(lse.mid) + bound);
  return bound * kSlack + kFloor;
}

/** The relative error of the sum of so many weights and of its reciprocal. */
ORACLE_HOST_DEVICE inline double merged_normalisation(const MergeFacts &facts, double states) {
  const double theta = expm1(states * log1p(kU));
  return (1.0 + facts.rcp) * (1.0 + kU) / (1.0 - fmin(theta, 0.5)) - 1.0;
}

/** Sums over the live states, for one component. */
struct MergeSums {
  double value;    ///< sum w o
  double plain;    ///< sum w |o|
  double weighted; ///< sum w (1 + omega) |o|
  double centered; ///< sum w omega |o - value / z|
  double limit;    ///< largest |o|
};

ORACLE_HOST_DEVICE inline BudgetTerms merged_column(const MergeFacts &facts,
                                                    const MergeNumbers &row, const MergeSums &sums,
                                                    Enclosure &o) {
  const double count = row.states, limit = sums.limit;
  const double value = sums.value / row.z, sum = row.z * row.mass_low;
  const double phi = merged_normalisation(facts, count);
  o = {value, ((2.02 * row.mass_error + 4 * (count + 8) * 0x1p-53) * sums.plain / row.z +
               2.02 * row.mass_error * limit + 0x1p-500 * limit) *
                      kSlack +
                  0x1p-1000};
  BudgetTerms t;
  t.weights =
      fmin((sums.centered / sum + o.rad * row.omega_mean / row.mass_low) * kSlack, 2 * limit);
  const double result = fabs(value) + o.rad + t.weights;
  t.merge = expm1((count + 1) * log1p(kU)) * fmin(sums.weighted / sum * kSlack, limit);
  t.normalisation = phi * (result + t.merge);
  t.flush = (2 * count + 4) * kFloor + count * kFloor * limit;
  if (facts.rounds)
    add_output_rounding(facts.output, fabs(value) + o.rad, t);
  else
    t.total = (t.weights + t.merge + t.normalisation + t.flush) * kSlack;
  t.overflow_possible = count * limit * 1.01 >= kFp32Limit;
  return t;
}

/** The row as one, whose keys are its states; one state has its own bits alone. */
ORACLE_HOST_DEVICE inline bool has_joint(const MergeNumbers &row) {
  return row.states > 1.0 && row.mass_low > 0.0;
}
ORACLE_HOST_DEVICE inline JointScalars merged_scalars(const MergeFacts &facts,
                                                      const MergeNumbers &row) {
  JointScalars joint;
  joint.normalise = merged_normalisation(facts, row.states);
  return joint;
}
ORACLE_HOST_DEVICE inline JointKey merged_key(const MergeNumbers &row, double weight,
                                              double omega) {
  JointKey key;
  key.error = weight * omega / (row.z * row.mass_low);
  return key;
}
ORACLE_HOST_DEVICE inline double merged_blur(int dims, const Enclosure &o, double limit) {
  return o.rad + dims * 0x1p-50 * limit;
}
ORACLE_HOST_DEVICE inline JointElement merged_element(const JointScalars &joint,
                                                      const BudgetTerms &t) {
  return {0.0, (t.merge * (1.0 + joint.normalise) + t.flush + t.output_rounding) * kSlack};
}

} // namespace assay::oracle
