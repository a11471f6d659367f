// SPDX-License-Identifier: Apache-2.0
// The entry points over a given kernel table, and the plugin rows built from them. The mutant build
// reuses both with a table of its own.
#pragma once

#include "kernels/abi/plugin.h"
#include "kernels/launch/kernel_table.h"

#include <array>

namespace assay {

// Each builds the call and, when `launch`, runs it; without `launch` it answers `supports`.
assay_status run_v1(const KernelTable &, const assay_paged_params *, bool launch);
assay_status run_v2(const KernelTable &, const assay_paged_params *, bool launch);
assay_status run_cascade(const KernelTable &, const assay_cascade_params *, bool launch);
assay_status run_merge_state(const KernelTable &, const assay_merge_state_params *, bool launch);
assay_status run_merge_states(const KernelTable &, const assay_merge_states_params *, bool launch);

/// v1, v2, cascade, merge_state, merge_states, in this order.
std::array<assay_kernel, 5> own_kernels(assay_target target);

} // namespace assay
