// SPDX-License-Identifier: Apache-2.0
// Outputs without a claim for what a kernel declares, and not for what the inputs are.
#pragma once

#include <cstdint>

#include "oracle/bounds/attention_row.h"

namespace assay::oracle {

/** Of `no_claim` outputs of a row, those about which a kernel without errors would have a claim.
    Partials in the format of the output are no error where a value is too large for it. */
uint64_t declared_away(const RowProblem &problem, const float *lse, uint64_t no_claim);

} // namespace assay::oracle
