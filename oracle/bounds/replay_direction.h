// SPDX-License-Identifier: Apache-2.0
// T1 along a direction: one set of roundings makes a whole row, so that its error is held to more
// than its elements are. Statement and proof: oracle/BOUNDS.md, section 4.
#pragma once

#include <span>

#include "oracle/bounds/attention_row.h"
#include "oracle/bounds/row_work.h"

namespace assay::oracle {

/**
 * The error of a row, |u.e| over what T1 allows along u, for the direction that shows it best: what
 * is left of each element's error when its own roundings have taken all they may. 0: they explain
 * it alone. `row` is T1 of the problem and applies; `got` are its outputs.
 */
double ratio_along_error(const RowProblem &problem, const RowWork &work, const ReplayedRow &row,
                         std::span<const float> got);

} // namespace assay::oracle
