// SPDX-License-Identifier: Apache-2.0
// Exchange of registers within a warp. T is any trivially copyable type. All lanes of `mask` take
// part, from one source line, and the caller is one of them. A source lane outside `mask` is an
// error.
//   T shfl_xor(v, lane_mask, mask)  the value of lane (lane ^ lane_mask), lane_mask in [0, 31]
//   T shfl_idx(v, src_lane, mask)   the value of lane src_lane, in [0, 31]; may differ per lane
//   T shfl_up(v, delta, mask)       the value of lane - delta; below lane 0: the caller's own
//   T shfl_down(v, delta, mask)     the value of lane + delta; above lane 31: the caller's own
//   uint32_t ballot(p, mask)        bit l: p of lane l; lanes outside `mask` give 0
//   bool any(p, mask), all(p, mask)
#pragma once

#include <cstring>
#include <type_traits>

#include "kernels/arch/thread.cuh"

#if ASSAY_IS_CUDA
#include "kernels/arch/cuda/shuffle.cuh"
#else
#include "kernels/arch/simt/shuffle.cuh"
#endif
