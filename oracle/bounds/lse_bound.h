// SPDX-License-Identifier: Apache-2.0
// Internal: the LSE of a row, README section 3.
#pragma once

#include "oracle/bounds/row_work.h"

namespace assay::oracle {

/** |LSE error| in base 2, of the declared arithmetic; then in the declared base. */
double lse_budget(const RowProblem &problem, const RowWork &work, double lse2);
Enclosure lse_enclosure(const RowProblem &problem, const RowWork &work, double *lse2);

} // namespace assay::oracle
