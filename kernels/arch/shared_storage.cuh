// SPDX-License-Identifier: Apache-2.0
// The block's dynamic shared memory.
//   T &shared_storage<T>()          viewed as T; T needs at most 1024-byte alignment and the launch
//                                   must give at least sizeof(T) bytes. Nothing is initialised.
//   T shared_load(const T *p)       T trivially copyable, 1, 2, 4, 8 or 16 bytes, p aligned to that
//   void shared_store(T *p, T v)
//   T *kept(T *p)                   p, an address of shared memory, kept in a register: nvcc would
//                                   else form it anew, from special registers, at every use. Only
//                                   for pointers that ldmatrix and cp_async take.
// Kernels touch shared memory through these, ldmatrix and cp_async only. The executor checks
// bounds, alignment and that what is read has been written.
#pragma once

#include <cstring>
#include <type_traits>

#include "kernels/arch/thread.cuh"

#if ASSAY_IS_CUDA
#include "kernels/arch/cuda/shared_storage.cuh"
#else
#include "kernels/arch/simt/shared_storage.cuh"
#endif
