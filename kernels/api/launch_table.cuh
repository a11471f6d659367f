// SPDX-License-Identifier: Apache-2.0
// Fills the launch table of ASSAY_TARGET; compiled once per target.
#pragma once

#include "kernels/api/launch_table.h"
#include "kernels/cascade/cascade_table.cuh"
#include "kernels/decode/decode_table.cuh"
#include "kernels/exchange/exchange_table.cuh"
#include "kernels/merge/merge_table.cuh"
#include "kernels/ranks/ranks_table.cuh"
#include "kernels/tree/tree_table.cuh"

namespace assay::ASSAY_TARGET {

inline assay_status launch_unshared(const TreeCall &call, void *stream) {
  Launch<SplitKvCall> launch = nullptr;
  ASSAY_RETURN_IF_ERROR(find_paged_attention_v2(call.own, launch));
  return launch(call.own, stream);
}

/// Where nothing can be shared tree_attention is paged_attention_v2.
inline assay_status find_tree_attention(const TreeCall &call, Launch<TreeCall> &launch) {
  if (call.may_share()) return find_tree_kernels(call, launch);
  Launch<SplitKvCall> flat = nullptr;
  ASSAY_RETURN_IF_ERROR(find_paged_attention_v2(call.own, flat));
  launch = &launch_unshared;
  return ASSAY_OK;
}

const LaunchTable &launch_table() {
  static constexpr LaunchTable kTable = {
#define ASSAY_KERNEL_ROW(name, Kernel) &find_##name,
#include "kernels/api/kernels.def"
#define ASSAY_KERNEL_ROW(name, Kernel)
#define ASSAY_PLANNED_KERNEL(name, Kernel) &find_##name##_plan,
#include "kernels/api/kernels.def"
  };
  return kTable;
}

} // namespace assay::ASSAY_TARGET
