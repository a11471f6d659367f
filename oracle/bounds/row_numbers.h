// SPDX-License-Identifier: Apache-2.0
// Internal: what the bounds of a row depend on besides its keys. Plain numbers: the formulas over
// them are one text for the host and for a GPU.
#pragma once

#include <cstdint>

#include "oracle/bounds/error_model.h"
#include "oracle/exact/format.h"
#include "oracle/exact/row_input.h"

namespace assay::oracle {

/** |exact - mid| <= rad. */
struct Enclosure {
  double mid = 0.0, rad = 0.0;
};

/** The allowed distance from the exact value, term by term. */
struct BudgetTerms {
  double weights = 0.0;       ///< softmax weights: scores, exponentials, rescaling
  double p_rounding = 0.0;    ///< P in the element type (T1: only the keys left ambiguous)
  double accumulation = 0.0;  ///< P.V
  double normalisation = 0.0; ///< row sum, reciprocal
  double merge = 0.0;         ///< states of a block, splits
  double output_rounding = 0.0;
  double earlier_rounding = 0.0; ///< of that, what comes before the last rounding
  double flush = 0.0;            ///< underflow
  double total = 0.0;
  bool overflow_possible = false; ///< an intermediate may leave the fp32 range: nothing is claimed
};

/** Of the call and of the row's head. */
struct RowFacts {
  RowFeatures features;
  Format output{}, operand{}; ///< format of O as it is written; of what the products see
  bool output_fp8 = false;
  bool rounds_kv = false; ///< K and V are rounded behind their scales, or from fp32
  Format kv{};            ///< what they are rounded to
  bool narrows = false;   ///< O is rounded before it is rounded to `output`
  Format narrow{};        ///< to this
  bool rounded_before_scale = false;
  bool natural_lse = true;
  int64_t keys = 0; ///< a sink counted
  bool v_subnormal = false;
};

/** What the keys of a row come to. */
struct RowNumbers {
  ErrorModel model{};
  RowShape shape{};
  RowFacts facts;
  double scale = 0.0;       ///< c = sm_scale * k_scale * log2(e)
  double scale_error = 0.0; ///< relative error of the kernel's
  double kv_unit = 0.0;     ///< what an element of K or V is off by, relative: scales of tokens
  double q_error = 0.0;     ///< error of an element of Q as the products see it
  double q_least = 0.0;     ///< below it an element of Q may be aligned as if it were this
  double q_sum = 0.0;       ///< sum of |q|
  double x_max = 0.0;       ///< largest computed x: the common scale 2^-x_max is exact by choice
  double x_abs = 0.0;       ///< limit of every |logit|, the kernel's included
  double x_error_max = 0.0;
  double z = 0.0;              ///< sum of the weights
  double weight_error = 0.0;   ///< largest relative error of a computed weight
  double mass_error = 0.0;     ///< their mean under the softmax weights
  double omega_mean = 0.0;     ///< mean of omega, under the softmax weights
  double log_omega_max = 0.0;  ///< log2 of the largest 1 + omega
  double mass_low = 1.0;       ///< lower limit of sum pi_j (1 + w_j), |w_j| <= omega_j
  double sum_low = 1.0;        ///< lower limit of a kernel's row sum on its own scale
  double largest_weight = 1.0; ///< upper limit of a weight there
  double log_sum = 0.0;        ///< limit of |log2| of a row sum there
  bool coarse = false;         ///< weights too uncertain here: only convexity is used
  bool vague = false;          ///< the kernel's may be anything: likewise
};

} // namespace assay::oracle
