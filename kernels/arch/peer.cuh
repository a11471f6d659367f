// SPDX-License-Identifier: Apache-2.0
// Words through which the blocks of several devices meet. All have system scope.
//   void store_release(uint32_t *p, uint32_t v)  what this thread knows of before the store is seen
//                                                by whoever acquires v
//   bool await_at_least(const uint32_t *p, uint32_t v, uint64_t timeout_ns)
//                                                waits until *p is v or later (counted with wrap),
//                                                and acquires; false after timeout_ns
//   void atomic_or_relaxed(uint32_t *p, uint32_t bits)
#pragma once

#include "kernels/arch/thread.cuh"

#if ASSAY_IS_CUDA
#include "kernels/arch/cuda/peer.cuh"
#else
#include "kernels/arch/simt/peer.cuh"
#endif
