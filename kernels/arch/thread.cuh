// SPDX-License-Identifier: Apache-2.0
// Which thread this is. Blocks have one dimension, grids up to three.
//   uint32_t thread_idx(), block_dim(), block_idx_x/y/z(), grid_dim_x/y/z(), lane_id(), warp_id()
#pragma once

#include "kernels/arch/target.cuh"

namespace assay::ASSAY_TARGET::arch {
inline constexpr uint32_t kWarpSize = 32;
inline constexpr uint32_t kFullMask = 0xffffffffu;
} // namespace assay::ASSAY_TARGET::arch

#if ASSAY_IS_CUDA
#include "kernels/arch/cuda/thread.cuh"
#else
#include "kernels/arch/simt/thread.cuh"
#endif
