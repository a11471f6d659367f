// SPDX-License-Identifier: Apache-2.0
// Barriers in shared memory that some threads arrive at and others wait for (sm_90).
//   void mbarrier_init(b, count)   by one thread, before a barrier of the block; b then counts
//                                  `count` arrivals a phase, and starts in phase 0
//   void mbarrier_arrive(b)        what the caller did before is visible to who waits for the phase
//   void mbarrier_wait(b, parity)  until the phase of that parity is complete:
//                                    0: the phase in {0, 2, ...} that the thread waits for
//                                    1: the phase in {1, 3, ...}; of a fresh barrier, where there
//                                       was none, it counts as complete: who waits for "the phase
//                                       before" need not treat the first one apart
// A waiting thread is at most one phase behind: phases further back cannot be told apart.
#pragma once

#include "kernels/arch/thread.cuh"

namespace assay::ASSAY_TARGET::arch {

struct alignas(8) Mbarrier {
  uint64_t word; // of the hardware
};

} // namespace assay::ASSAY_TARGET::arch

#if ASSAY_IS_CUDA
#include "kernels/arch/cuda/mbarrier.cuh"
#else
#include "kernels/arch/simt/mbarrier.cuh"
#endif
