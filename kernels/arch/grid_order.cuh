// SPDX-License-Identifier: Apache-2.0
// Order between a grid and the one in front of it in the stream, when it was launched to start
// early (programmatic dependent launch, PDL; sm_90 on); in any other launch both do nothing.
//   void wait_for_previous_grid()  until that grid has finished and its writes are visible. Before
//                                  it a thread reads nothing that grid may write, and writes
//                                  nothing
//   void start_next_grid()         this block no longer holds back a grid launched to start early;
//                                  after the wait, so that a grid overlaps one other at most
// Every thread waits before it exits: what follows this grid relies on the ones before it, too.
#pragma once

#include "kernels/arch/thread.cuh"

#if ASSAY_IS_CUDA
#include "kernels/arch/cuda/grid_order.cuh"
#else
#include "kernels/arch/simt/grid_order.cuh"
#endif
