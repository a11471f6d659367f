// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "kernels/simt/device.h"

namespace assay::n_simt::arch {

inline uint32_t thread_idx() { return simt::thread_view.thread; }
inline uint32_t block_dim() { return simt::thread_view.block_dim; }
inline uint32_t block_idx_x() { return simt::thread_view.block_idx[0]; }
inline uint32_t block_idx_y() { return simt::thread_view.block_idx[1]; }
inline uint32_t block_idx_z() { return simt::thread_view.block_idx[2]; }
inline uint32_t grid_dim_x() { return simt::thread_view.grid_dim[0]; }
inline uint32_t grid_dim_y() { return simt::thread_view.grid_dim[1]; }
inline uint32_t grid_dim_z() { return simt::thread_view.grid_dim[2]; }
inline uint32_t lane_id() { return thread_idx() % kWarpSize; }
inline uint32_t warp_id() { return thread_idx() / kWarpSize; }

} // namespace assay::n_simt::arch
