// SPDX-License-Identifier: Apache-2.0
// Copies from global to shared memory that run beside the thread.
//   void cp_async_16(dst, src, valid)  16 bytes, both 16-byte aligned; !valid: zeros are written
//                                      and the source is not read
//   void cp_async_commit()             closes the group of this thread's copies since the last one
//   void cp_async_wait<N>()            until at most the N newest groups of this thread are pending
// The bytes are visible to the copying thread after its wait, to others after a barrier beyond it.
// Until then they must be neither read nor written.
#pragma once

#include "kernels/arch/thread.cuh"

#if ASSAY_IS_CUDA
#include "kernels/arch/cuda/async_copy.cuh"
#else
#include "kernels/arch/simt/async_copy.cuh"
#endif
