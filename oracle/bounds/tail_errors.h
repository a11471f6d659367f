// SPDX-License-Identifier: Apache-2.0
// Internal: what the steps after P.V round.
#pragma once

#include "oracle/bounds/error_model.h"

namespace assay::oracle {

/** Roundings of the fp32 steps after P.V, as relative errors. */
struct TailErrors {
  double pv;        ///< accumulation and rescaling of one state
  double partials;  ///< log of what merging states and splits adds: roundings, splits' reciprocals
  double merge;     ///< that, as a relative error
  double normalise; ///< row sum and last reciprocal, relative to the result
  double row_sum;   ///< |ln| of the final denominator over the exact one, at most
  double floor;     ///< absolute underflow, on the kernel's scale
};
TailErrors tail_errors(const ErrorModel &model, const RowShape &shape);

} // namespace assay::oracle
