// SPDX-License-Identifier: Apache-2.0
// Fills the kernel table of ASSAY_TARGET; included by one .cpp and one .cu.
#pragma once

#include "kernels/arch/convert.cuh"
#include "kernels/launch/decode_launch.h"
#include "kernels/launch/kernel_table.h"
#include "kernels/launch/merge_launch.cuh"
#include "kernels/launch/plan_launch.cuh"

namespace assay::ASSAY_TARGET {

const KernelTable &kernel_table() {
  static constexpr KernelTable::Decode kDecode[] = {
#define ASSAY_INSTANTIATE(query, dtype, kv, kv_dtype, head_dim)                                    \
  {dtype,                                                                                          \
   kv_dtype,                                                                                       \
   head_dim,                                                                                       \
   &DecodeLaunch<arch::query, arch::kv, head_dim>::v1,                                             \
   &DecodeLaunch<arch::query, arch::kv, head_dim>::v2,                                             \
   &DecodeLaunch<arch::query, arch::kv, head_dim>::cascade},
#include "kernels/launch/instantiations.def"
#undef ASSAY_INSTANTIATE
  };
  static constexpr KernelTable kTable = {kDecode, sizeof(kDecode) / sizeof(kDecode[0]),
                                         &launch_plan, &launch_merge_state, &launch_merge_states};
  return kTable;
}

} // namespace assay::ASSAY_TARGET
