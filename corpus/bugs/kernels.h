// SPDX-License-Identifier: Apache-2.0
// Known bugs of other people's kernels, each as a kernel of its own behind the plugin table, and
// the same kernels without any.
#pragma once

#include <string_view>

#include "kernels/abi/plugin.h"

namespace assay::bugs {

/// right_paged, right_ragged, right_sharded, right_staged, right_merge_state, right_merge_states,
/// and a kernel a bug.
const assay_plugin &plugin();
/// Null when there is none of that name.
const assay_kernel *find_kernel(std::string_view name);
/// What a wrong kernel is without its mistake; null when there is none of that name.
const assay_kernel *right_kernel(std::string_view wrong);

} // namespace assay::bugs
