// SPDX-License-Identifier: Apache-2.0
#pragma once

namespace assay::n_cuda::arch {

ASSAY_DEVICE void block_barrier() { __syncthreads(); }
ASSAY_DEVICE void warp_barrier(uint32_t mask = kFullMask) { __syncwarp(mask); }
ASSAY_DEVICE void named_barrier(int id, int num_threads) {
  asm volatile("bar.sync %0, %1;" ::"r"(id), "r"(num_threads) : "memory");
}

ASSAY_DEVICE void fence_async_proxy() {
#if __CUDA_ARCH__ >= 900
  asm volatile("fence.proxy.async.shared::cta;" ::: "memory");
#endif
}

} // namespace assay::n_cuda::arch
