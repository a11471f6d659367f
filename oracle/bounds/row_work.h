// SPDX-License-Identifier: Apache-2.0
// Internal: per-key quantities that every bound of a row starts from.
#pragma once

#include <string>
#include <vector>

#include "oracle/bounds/attention_row.h"
#include "oracle/bounds/key_formulas.h"

namespace assay::oracle {

struct RowWork : RowNumbers {
  std::vector<double> q;          ///< the query in double
  std::vector<double> x;          ///< base-2 logits
  std::vector<double> x_radius;   ///< |x - exact|: error of this evaluation
  std::vector<double> x_error;    ///< c e_j: what the kernel's score may be off by, in the exponent
  std::vector<double> weight;     ///< 2^(x - x_max)
  std::vector<double> omega;      ///< relative error of the kernel's effective weights
  std::vector<double> weight_low; ///< lower limit of a kernel's effective weight; 0: may be flushed

  Logit logit(size_t j) const { return {x[j], x_radius[j], x_error[j]}; }
};

/**
 * Scores, weights, Omega. `scores`, when given, replaces q.k (bit replay): the kernel's own scores,
 * exact, without score error. Returns a reason when no claim can be made.
 */
std::string prepare_row(const RowProblem &problem, RowWork &work,
                        const std::vector<double> *scores = nullptr);

/** The declared arithmetic of a row's kernel, as constants. */
ErrorModel model_of(const RowProblem &problem, int head_dim);
/** Into what `keys` keys, a sink that counts among them, are cut; `problem.keys` is not looked at. */
RowShape shape_of_row(const RowProblem &problem, const ErrorModel &model, size_t keys);
/** What rows share; of `problem.keys`, where there are any, their number and subnormal values. */
RowFacts facts_of(const RowProblem &problem);
/** Empty, or why nothing is claimed for a row with these features. */
std::string unclaimed_features(const RowFeatures &features);

/** The LSE in the declared base; `lse2`: in base 2. */
Enclosure lse_of(const RowWork &work, double *lse2);

} // namespace assay::oracle
