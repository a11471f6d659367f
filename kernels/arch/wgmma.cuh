// SPDX-License-Identifier: Apache-2.0
// Asynchronous matrix multiply-accumulate of a warpgroup (sm_90a; kWarpgroups says whether this
// target has it). A warpgroup is four warps, the first of which has a multiple of four as its
// number. All threads of the four warps execute the same operations in the same order, from the
// same source lines.
//
//   wgmma_m64k16<E>(c, a, b, accumulate)   c (64 x N, fp32) = a (64 x 16) * b (16 x N). With
//                                          `accumulate` the old c is added. N is twice the length
//                                          of c: 64 or 128
//     c       with g = lane / 4, t = lane % 4 and warp w of the group, h and i in {0, 1}:
//             c[4 j + 2 i + h]: (16 w + g + 8 i, 8 j + 2 t + h)
//             that is, warp w has 16 rows, laid out like C of mma_m16n8k16, 8 columns after 8
//     a       registers, laid out like A of mma_m16n8k16 (rows 16 w to 16 w + 15 in warp w), or
//             a KMajorMatrix of 64 rows
//     b       a KMajorMatrix of N rows where a is in shared memory, or
//             an NMajorMatrix where a is in registers
//   wgmma_fence(r...)     stands in front of the first operation of a group, and behind ordinary
//                         accesses to registers that an operation uses. r: the arrays of those
//   wgmma_commit()        makes a group of the operations since the last commit
//   wgmma_wait<n>(r...)   waits until at most the n newest groups are pending. r: the arrays that
//                         may be used from then on
// From an operation to the wait that covers it nobody may touch c, and nobody may overwrite a or b.
//
// A matrix in shared memory has 16-bit elements in rows of 128 bytes. The 16-byte chunks of a row
// are swizzled: chunk c of row r is stored at c ^ (r % 8), where rows count from a multiple of 1024
// bytes.
//   KMajorMatrix(p)         a row is one index of M or N, and has 64 elements of K
//   NMajorMatrix(p, block)  a row is one index of K, and has 64 elements of N; the next 64 elements
//                           are `block` bytes further on
//   m.at(bytes)             the part of m that begins `bytes` further on: a multiple of 1024, or of
//                           32 within a row
//
//   lower_registers<n>(), raise_registers<n>()   set how many registers a thread of this warpgroup
//                           may use from here on: n, a multiple of 8
//   trap_without_warpgroups()   ends the launch with an error: the body of a kernel that was
//                           compiled where kWarpgroups is false
#pragma once

#include "kernels/arch/convert.cuh"
#include "kernels/arch/sync.cuh"
#include "kernels/arch/thread.cuh"

#if ASSAY_IS_CUDA
#include "kernels/arch/cuda/wgmma.cuh"
#else
#include "kernels/arch/simt/wgmma.cuh"
#endif
