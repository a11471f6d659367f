// SPDX-License-Identifier: Apache-2.0
// Barriers. A barrier orders what its participants did to shared and global memory before it
// against what they do behind it. The participants are
//   block_barrier()                 every thread of the block, from one source line; none may have
//                                   exited
//   warp_barrier(mask = kFullMask)  the lanes of `mask`, the caller among them
//   named_barrier(id, num_threads)  whole warps, num_threads in all (a multiple of 32); id 1 to 15
// fence_async_proxy() makes what this thread wrote to shared memory known to matrix operations and
// bulk copies of the threads that it meets at a barrier afterwards (sm_90; PTX ISA, "membar/fence":
// fence.proxy.async). What cp_async wrote counts once the thread has waited for it.
#pragma once

#include "kernels/arch/thread.cuh"

#if ASSAY_IS_CUDA
#include "kernels/arch/cuda/sync.cuh"
#else
#include "kernels/arch/simt/sync.cuh"
#endif
