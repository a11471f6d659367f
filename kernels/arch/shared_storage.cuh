// SPDX-License-Identifier: Apache-2.0
// The block's dynamic shared memory.
//   T &shared_storage<T>()          the memory as a T. T is aligned to at most 1024 bytes, and the
//                                   launch gives at least sizeof(T) bytes. Nothing is initialised
//   T shared_load(const T *p)       T is trivially copyable and has 1, 2, 4, 8 or 16 bytes; p is
//                                   aligned to its size
//   void shared_store(T *p, T v)
//   T *kept(T *p)                   p, kept in a register. nvcc would otherwise form an address of
//                                   shared memory from special registers at every use. It serves
//                                   pointers for ldmatrix and cp_async alone
// Kernels touch shared memory through these functions, ldmatrix and cp_async only. The executor
// checks bounds, alignment, and that what is read has been written.
#pragma once

#include <cstring>
#include <type_traits>

#include "kernels/arch/thread.cuh"

#if ASSAY_IS_CUDA
#include "kernels/arch/cuda/shared_storage.cuh"
#else
#include "kernels/arch/simt/shared_storage.cuh"
#endif
