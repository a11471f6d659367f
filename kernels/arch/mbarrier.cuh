// SPDX-License-Identifier: Apache-2.0
// Barriers in shared memory that some threads arrive at and others wait for (sm_90; PTX ISA,
// "mbarrier").
//   void mbarrier_init(b, count)   one thread calls it, before a barrier of the block. b starts in
//                                  phase 0, and `count` arrivals, 1 to 2^20 - 1, complete a phase
//   void fence_mbarrier_init()     makes what this thread has initialised known to bulk copies
//   void mbarrier_arrive(b)        counts one arrival; threads that wait for the phase see what the
//                                  caller did before
//   void mbarrier_expect_tx(b, n)  the phase needs n more bytes of bulk copies, too; fewer than
//                                  2^20 in a phase
//   void mbarrier_arrive_expect_tx(b, n)   expects n bytes, then arrives
//   void mbarrier_wait(b, parity)  waits until the phase of that parity is complete:
//                                    0: the phase in {0, 2, ...} that the thread waits for
//                                    1: the phase in {1, 3, ...}. A fresh barrier had none: its
//                                       phase of parity 1 counts as complete, so that who waits
//                                       for "the phase before" need not treat phase 0 apart
// A waiting thread may be one phase behind and no more: a parity cannot tell older phases apart.
#pragma once

#include "kernels/arch/thread.cuh"

namespace assay::ASSAY_TARGET::arch {

struct alignas(8) Mbarrier {
  uint64_t word; // the hardware's representation
};

} // namespace assay::ASSAY_TARGET::arch

#if ASSAY_IS_CUDA
#include "kernels/arch/cuda/mbarrier.cuh"
#else
#include "kernels/arch/simt/mbarrier.cuh"
#endif
