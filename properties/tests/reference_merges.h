// SPDX-License-Identifier: Apache-2.0
// Merges in plain C++, right and wrong on request (reference_kernels.h).
#pragma once

#include "kernels/abi/assay.h"

namespace assay::reference {

assay_status run_merge_state(const void *params);
assay_status run_merge_states(const void *params);

} // namespace assay::reference
