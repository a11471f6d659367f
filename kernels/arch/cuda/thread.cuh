// SPDX-License-Identifier: Apache-2.0
#pragma once

namespace assay::n_cuda::arch {

ASSAY_DEVICE uint32_t thread_idx() { return threadIdx.x; }
ASSAY_DEVICE uint32_t block_dim() { return blockDim.x; }
ASSAY_DEVICE uint32_t block_idx_x() { return blockIdx.x; }
ASSAY_DEVICE uint32_t block_idx_y() { return blockIdx.y; }
ASSAY_DEVICE uint32_t block_idx_z() { return blockIdx.z; }
ASSAY_DEVICE uint32_t grid_dim_x() { return gridDim.x; }
ASSAY_DEVICE uint32_t grid_dim_y() { return gridDim.y; }
ASSAY_DEVICE uint32_t grid_dim_z() { return gridDim.z; }
ASSAY_DEVICE uint32_t lane_id() { return threadIdx.x % kWarpSize; }
ASSAY_DEVICE uint32_t warp_id() { return threadIdx.x / kWarpSize; }

} // namespace assay::n_cuda::arch
