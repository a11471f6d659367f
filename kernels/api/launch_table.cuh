// SPDX-License-Identifier: Apache-2.0
// Fills the launch table of ASSAY_TARGET; compiled once per target.
#pragma once

#include "kernels/api/launch_table.h"
#include "kernels/cascade/cascade_table.cuh"
#include "kernels/decode/decode_table.cuh"
#include "kernels/merge/merge_table.cuh"
#include "kernels/tree/tree_table.cuh"

namespace assay::ASSAY_TARGET {

/// Where nothing can be shared tree_attention is paged_attention_v2.
inline assay_status launch_tree_attention(const TreeCall &call, void *stream, bool launch) {
  return call.may_share() ? launch_tree_kernels(call, stream, launch)
                          : launch_paged_attention_v2(call.own, stream, launch);
}

const LaunchTable &launch_table() {
  static constexpr LaunchTable kTable = {
#define ASSAY_KERNEL_ROW(name, Kernel) &launch_##name,
#include "kernels/api/kernels.def"
      &launch_plan, &launch_tree_plan};
  return kTable;
}

} // namespace assay::ASSAY_TARGET
