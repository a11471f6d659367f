// SPDX-License-Identifier: Apache-2.0
// Tensor-core multiply-accumulate and the loads that feed it. All 32 lanes of the warp take part,
// from one source line. With g = lane / 4 and t = lane % 4, 16-bit pairs low half first:
//   A (16 x 16, row)  a[0]: (g, 2t..2t+1)    a[1]: (g+8, 2t..)   a[2]: (g, 2t+8..)  a[3]: (g+8,
//   2t+8..) B (16 x 8, col)   b[0]: (2t..2t+1, g)    b[1]: (2t+8.., g) C (16 x 8)        c[0..1]:
//   (g, 2t..2t+1) c[2..3]: (g+8, 2t..2t+1) 8 x 8 matrices    (g, 2t..2t+1)
//
//   ldmatrix_x1/_x2/_x4(r, row)        matrix i's eight 16-byte rows are at the addresses that
//   lanes
//                                      8i..8i+7 pass (16-byte aligned, shared memory); other lanes'
//                                      addresses are ignored
//   ldmatrix_x1_trans/_x2_trans/...    each matrix transposed
//   uint32_t movmatrix_trans(r)        8 x 8 of 16 bits, transposed across the warp
//   mma_m16n8k16<E>(c, a, b)           c += a * b, E = bf16 or fp16. simt: the block-FMA model of
//                                      kernels/arch/simt/block_fma.h
#pragma once

#include "kernels/arch/convert.cuh"
#include "kernels/arch/thread.cuh"

#if ASSAY_IS_CUDA
#include "kernels/arch/cuda/mma.cuh"
#else
#include "kernels/arch/simt/mma.cuh"
#endif
