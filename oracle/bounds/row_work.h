// SPDX-License-Identifier: Apache-2.0
// Internal: per-key quantities that every bound of a row starts from.
#pragma once

#include <vector>

#include "oracle/bounds/attention_row.h"
#include "oracle/bounds/error_model.h"
#include "oracle/bounds/tail_errors.h"

namespace assay::oracle {

struct RowWork {
  ErrorModel model;
  RowShape shape;
  double scale = 0.0;           ///< c = sm_scale * k_scale * log2(e)
  double scale_error = 0.0;     ///< relative error of the kernel's
  double kv_unit = 0.0;         ///< what an element of K or V is off by, relative: scales of tokens
  double q_error = 0.0;         ///< of an element of Q as the products see it
  double q_least = 0.0;         ///< below it an element of Q may be aligned as if it were this
  std::vector<double> q;        ///< the query in double
  std::vector<double> x;        ///< base-2 logits
  std::vector<double> x_radius; ///< |x - exact|: error of this evaluation
  std::vector<double> x_error;  ///< c e_j: what the kernel's score may be off by, in the exponent
  double q_sum = 0.0;           ///< sum of |q|
  double x_max = 0.0;           ///< of the computed x: the common scale 2^-x_max is exact by choice
  double x_abs = 0.0;           ///< limit of every |logit|, the kernel's included
  double x_error_max = 0.0;
  std::vector<double> weight;     ///< 2^(x - x_max)
  double z = 0.0;                 ///< sum of the weights
  double weight_error = 0.0;      ///< largest relative error of a computed weight
  double mass_error = 0.0;        ///< their mean under the softmax weights
  std::vector<double> omega;      ///< relative error of the kernel's effective weights
  double omega_mean = 0.0;        ///< under the softmax weights
  std::vector<double> weight_low; ///< lower limit of a kernel's effective weight; 0: may be flushed
  double log_omega_max = 0.0;     ///< log2 of the largest 1 + omega
  double mass_low = 1.0;          ///< lower limit of sum pi_j (1 + w_j), |w_j| <= omega_j
  double sum_low = 1.0;           ///< lower limit of a kernel's row sum on its own scale
  double largest_weight = 1.0;    ///< upper limit of a weight there
  double log_sum = 0.0;           ///< limit of |log2| of a row sum there
  bool coarse = false;            ///< weights too uncertain here: only convexity is used
  bool vague = false;             ///< the kernel's may be anything: likewise
};

/** Relative error of the C library's exp2, with room; certified by the tests. */
inline constexpr double kExp2Error = 0x1p-50;
/** Exponent limit beyond which a weight may be flushed to zero somewhere on its way. */
inline constexpr double kFlushExponent = 124.0;
/** From here on a weight is nothing but underflow, whatever a kernel's error makes of it. */
inline constexpr double kCertainlyFlushed = 200.0;

/**
 * Scores, weights, Omega. `scores`, when given, replaces q.k (bit replay): the kernel's own scores,
 * exact, without score error. Returns a reason when no claim can be made.
 */
std::string prepare_row(const RowProblem &problem, RowWork &work,
                        const std::vector<double> *scores = nullptr);

/** Underflow of single operations, of keys, of stored partials, and of the alignment of subnormal
    values, before v_scale. */
double underflow_budget(const RowProblem &problem, const RowWork &work, const TailErrors &tail,
                        double largest_value);

/** What V, rounded behind its scale, is off by, before v_scale. `magnitude`: sum of weights times |v|. */
double value_rounding(const RowProblem &problem, double magnitude);

/** An unnormalised output may reach keys * largest weight * largest value; then comes v_scale. */
bool overflow_possible(const RowProblem &problem, const RowWork &work, double largest_value);

/** Exponent error that LSE partials add to every key of a split, per merge stage. */
double combine_exponent_error(const RowWork &work, double below_max);

/** Sets output_rounding and total from the other terms; `magnitude` limits the exact |o|, `earlier`
    what a first rounding is off by. */
void add_output_rounding(assay_dtype dtype, double magnitude, BudgetTerms &terms,
                         double earlier = 0.0);

/** From the accumulator to the output: v_scale, then the rounding to the element type. Scales the
    enclosure and sets output_rounding and total from the other terms. */
void finish_output(const RowProblem &problem, Enclosure &o, BudgetTerms &terms);

} // namespace assay::oracle
