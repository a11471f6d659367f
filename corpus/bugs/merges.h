// SPDX-License-Identifier: Apache-2.0
// Merges of states: a thread eight components, the LSEs by way of a barrier or shared memory.
#pragma once

#include "kernels/abi/assay.h"

namespace assay::bugs {

assay_status run_merge_state(const void *params);
assay_status run_merge_states(const void *params);

} // namespace assay::bugs
