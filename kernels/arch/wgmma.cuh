// SPDX-License-Identifier: Apache-2.0
// Asynchronous matrix multiply-accumulate of a warpgroup: four warps from a multiple of four on
// (sm_90a; kWarpgroups says whether this target has it). All threads of the four warps execute the
// same operations in the same order, from the same source lines.
//
//   wgmma_m64k16<E>(c, a, b, accumulate)   c (64 x N, fp32) = a (64 x 16) * b (16 x N), plus c when
//                                          `accumulate`; N = 2 * the length of c: 64 or 128
//     c       with g = lane / 4, t = lane % 4 and warp w of the group, h and i in {0, 1}:
//             c[4 j + 2 i + h]: (16 w + g + 8 i, 8 j + 2 t + h)
//             that is, warp w has 16 rows, laid out like C of mma_m16n8k16, 8 columns after 8
//     a       registers, laid out like A of mma_m16n8k16 (rows 16 w to 16 w + 15 in warp w), or
//             a KMajorMatrix of 64 rows
//     b       a KMajorMatrix of N rows where a is in shared memory, or
//             an NMajorMatrix where a is in registers
//   wgmma_fence(r...)     in front of the first operation of a group, and after ordinary accesses
//                         to registers that an operation uses; r: those arrays
//   wgmma_commit()        closes the group of operations since the last one
//   wgmma_wait<n>(r...)   until at most the n newest groups are pending; r: arrays that may be used
//                         from then on
// From its operation to the wait that covers it c must not be touched, and a and b must not be
// overwritten.
//
// Matrices in shared memory are 16-bit elements in rows of 128 bytes, whose 16-byte chunks are
// swizzled: chunk c of row r (counted from a multiple of 1024 bytes) is stored at c ^ (r % 8).
//   KMajorMatrix(p)         row = M or N index, 64 elements of K
//   NMajorMatrix(p, block)  row = K index, 64 elements of N; the next 64 are `block` bytes on
//   m.at(bytes)             that part of it `bytes` on: multiples of 1024, and of 32 within a row
//
//   fence_async_proxy()     shared memory that this thread wrote (cp_async: and waited for) may be
//                           read by matrix operations of threads it meets at a barrier afterwards
//   lower_registers<n>(), raise_registers<n>()   registers a thread of this warpgroup may use from
//                           here on; a multiple of 8
#pragma once

#include "kernels/arch/convert.cuh"
#include "kernels/arch/thread.cuh"

#if ASSAY_IS_CUDA
#include "kernels/arch/cuda/wgmma.cuh"
#else
#include "kernels/arch/simt/wgmma.cuh"
#endif
