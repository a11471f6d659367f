// SPDX-License-Identifier: Apache-2.0
// Order between a grid and the grid in front of it in the stream, for a grid that was launched to
// start early (programmatic dependent launch, PDL; from sm_90 on). In any other launch both
// functions do nothing.
//   void wait_for_previous_grid()  waits until the grid in front has finished and its writes are
//                                  visible. Before the wait a thread writes nothing, and reads
//                                  nothing that the grid in front may write
//   void start_next_grid()         lets the grid behind start, as far as this block is concerned.
//                                  It stands behind the wait, so that a grid overlaps at most one
//                                  other
// Every thread waits before it exits: the grid behind relies on all grids before this one, too.
#pragma once

#include "kernels/arch/thread.cuh"

#if ASSAY_IS_CUDA
#include "kernels/arch/cuda/grid_order.cuh"
#else
#include "kernels/arch/simt/grid_order.cuh"
#endif
