// SPDX-License-Identifier: Apache-2.0
// Copies from global to shared memory that run beside the thread.
//   void cp_async_16(dst, src, valid)  copies 16 bytes; both pointers are 16-byte aligned. Without
//                                      `valid` it writes zeros and does not read the source
//   void cp_async_commit()             makes a group of this thread's copies since the last commit
//   void cp_async_wait<N>()            waits until at most the N newest groups of this thread are
//                                      pending
// The copying thread sees the bytes after its wait. Other threads see them after a barrier behind
// that wait. Until then nobody may read or write them.
#pragma once

#include "kernels/arch/thread.cuh"

#if ASSAY_IS_CUDA
#include "kernels/arch/cuda/async_copy.cuh"
#else
#include "kernels/arch/simt/async_copy.cuh"
#endif
