// SPDX-License-Identifier: Apache-2.0
// What a pass is worth: how small a mistake the bounds of a call still show.
#pragma once

#include <span>

#include "oracle/judge/judge.h"

namespace assay::oracle {

/** Each alone, the kernel's own errors aside; NaN: not known. */
struct Sharpness {
  double scaling = NAN;     ///< O of every row times 1 + this: seen in the row that shows it best
  double sm_scale = NAN;    ///< sm_scale times 1 + this: likewise
  double lost_weight = NAN; ///< a lost key of that share of the weights: seen in half of the rows
};

/** Looks at a row, by its elements and along the error that the mistake makes. */
Sharpness sharpness_of(const RowProblem &problem, const RowReference &row);

/** Looks at some pairs of a call: at most 8, and one in 16. Nothing is known of merges. */
Sharpness sharpness_of(const CallRows &rows, const KernelModel &model, std::span<const int> chosen);

} // namespace assay::oracle
