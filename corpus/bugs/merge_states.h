// SPDX-License-Identifier: Apache-2.0
// A merge of many states: a few blocks walk over all heads, LSEs by way of shared memory.
#pragma once

#include "kernels/abi/plugin.h"

namespace assay::bugs {

assay_status run_merge_states(const void *params);

} // namespace assay::bugs
