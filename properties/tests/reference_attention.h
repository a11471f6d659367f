// SPDX-License-Identifier: Apache-2.0
// Attention in plain C++, right and wrong on request (reference_kernels.h).
#pragma once

#include <cstdint>

#include "kernels/abi/assay.h"

namespace assay::reference {

inline constexpr int kTile = 16; ///< keys between two updates of the running maximum

assay_status run_v1(const void *params);      ///< paged, one partition
assay_status run_v2(const void *params);      ///< paged, splits through the workspace
assay_status run_cascade(const void *params); ///< splits too

assay_status paged_workspace(const void *params, uint64_t *bytes);
assay_status cascade_workspace(const void *params, uint64_t *bytes);

} // namespace assay::reference
