// SPDX-License-Identifier: Apache-2.0
// The cascade kernel for segments that many rows share: dense attention on warpgroups (sm_90a).
#pragma once

#include "kernels/blocks/sm90_core.cuh"
#include "kernels/cascade/cascade_work.cuh"

namespace assay::ASSAY_TARGET {

/// The items of a block: it has one.
struct CascadeItem {
  using Work = CascadeWork;
  static constexpr bool kOneItem = true;
  const CascadeWork &work;
  ASSAY_DEVICE bool next(Work &item) const {
    item = work;
    return true;
  }
};

/// Grid: tile slots * kv heads * splits blocks per level.
template <class Core>
ASSAY_KERNEL((Core::kThreads), 1)
cascade_wide(const ASSAY_GRID_CONSTANT CascadeParams params) {
  if constexpr (arch::kWarpgroups) {
    CascadeWork work;
    arch::wait_for_previous_grid();
    arch::start_next_grid();
    if (locate_cascade_work<Core::kRows, Core::kTile>(params, arch::block_idx_x(), work))
      Core::run(params, CascadeItem{work},
                work.num_rows - work.first_row > Core::kGroupRows ? 2 : 1);
  } else {
    arch::trap_without_warpgroups();
  }
}

} // namespace assay::ASSAY_TARGET
