// SPDX-License-Identifier: Apache-2.0
// Tensor-core multiply-accumulate and the loads that feed it. All 32 lanes of the warp take part,
// from one source line.
//
// Fragments, with g = lane / 4 and t = lane % 4. A register holds two neighbours of 16 bits, the
// first in its low half; an accumulator is one fp32. Positions are (row, column):
//   A (16 x 16)     a[0]: (g,     2t), (g,     2t + 1)
//                   a[1]: (g + 8, 2t), (g + 8, 2t + 1)
//                   a[2]: (g,     2t + 8), (g,     2t + 9)
//                   a[3]: (g + 8, 2t + 8), (g + 8, 2t + 9)
//   B (16 x 8)      b[0]: (2t,     g), (2t + 1, g)
//                   b[1]: (2t + 8, g), (2t + 9, g)
//   C (16 x 8)      c[0]: (g,     2t)     c[1]: (g,     2t + 1)
//                   c[2]: (g + 8, 2t)     c[3]: (g + 8, 2t + 1)
//   8 x 8 matrix    r:    (g,     2t), (g,     2t + 1)
//
//   ldmatrix_x1/_x2/_x4(r, row)        r[i] is matrix i. The lanes 8i..8i+7 pass the addresses of
//                                      its eight rows: 16 bytes each, 16-byte aligned, in shared
//                                      memory. The addresses of other lanes are ignored
//   ldmatrix_x1_trans/_x2_trans/...    the same, and each matrix is transposed
//   uint32_t movmatrix_trans(r)        8 x 8 of 16 bits, transposed across the warp
//   mma_m16n8k16<E>(c, a, b)           c += a * b, for E = bf16 or fp16. simt computes it by the
//                                      model of kernels/arch/simt/block_fma.h
#pragma once

#include "kernels/arch/convert.cuh"
#include "kernels/arch/thread.cuh"

#if ASSAY_IS_CUDA
#include "kernels/arch/cuda/mma.cuh"
#else
#include "kernels/arch/simt/mma.cuh"
#endif
