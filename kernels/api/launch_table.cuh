// SPDX-License-Identifier: Apache-2.0
// Fills the launch table of ASSAY_TARGET; compiled once per target.
#pragma once

#include "kernels/api/launch_table.h"
#include "kernels/cascade/cascade_table.cuh"
#include "kernels/decode/decode_table.cuh"
#include "kernels/merge/merge_table.cuh"
#include "kernels/tree/tree_table.cuh"

namespace assay::ASSAY_TARGET {

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
