// SPDX-License-Identifier: Apache-2.0
#pragma once

namespace assay::n_cuda::arch {

ASSAY_DEVICE void block_barrier() { __syncthreads(); }
ASSAY_DEVICE void warp_barrier(uint32_t mask = kFullMask) { __syncwarp(mask); }
ASSAY_DEVICE void named_barrier(int id, int num_threads) {
  asm volatile("bar.sync %0, %1;" ::"r"(id), "r"(num_threads) : "memory");
}

} // namespace assay::n_cuda::arch
