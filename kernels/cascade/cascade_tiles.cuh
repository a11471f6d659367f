// SPDX-License-Identifier: Apache-2.0
// The cascade kernel of mma tiles, for devices without warpgroups, and for segments of too few rows
// to fill those.
#pragma once

#include "kernels/arch/grid_order.cuh"
#include "kernels/blocks/mma_core.cuh"
#include "kernels/cascade/cascade_work.cuh"

namespace assay::ASSAY_TARGET {

/// Grid: tile slots * kv heads * splits blocks per level.
template <class E, int kHeadDim>
ASSAY_KERNEL((MmaCore<E, kHeadDim>::kThreads), 1)
cascade_tiles(const ASSAY_GRID_CONSTANT CascadeParams params) {
  using Core = MmaCore<E, kHeadDim>;
  CascadeWork work;
  arch::wait_for_previous_grid();
  arch::start_next_grid();
  if (locate_cascade_work<Core::kRows, Core::kPolicy.tile>(params, arch::block_idx_x(), work))
    Core::run(params, work);
}

} // namespace assay::ASSAY_TARGET
