// SPDX-License-Identifier: Apache-2.0
// Plain paged attention as device kernels do it: a block of two warps a (request, kv head, half of
// the keys), tiles copied to shared memory one ahead, four lanes a query row, and the half that
// ends last merges both.
#pragma once

#include <cstdint>

#include "kernels/abi/plugin.h"

namespace assay::bugs {

assay_status staged_supports(const void *params);
assay_status staged_workspace(const void *params, uint64_t *bytes);
assay_status run_staged(const void *params);

} // namespace assay::bugs
