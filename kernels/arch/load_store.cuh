// SPDX-License-Identifier: Apache-2.0
// Global memory. T is trivially copyable and has 1, 2, 4, 8 or 16 bytes; p is aligned to its size.
//   struct Vec2, Vec4                 8 and 16 bytes, the widest access
//   T global_load(const T *p)
//   T global_load_streaming(p)        for data that is read once: L1 does not keep it
//   T global_load_readonly(p)         for data that nobody writes while the kernel runs
//   void global_store(T *p, T v)
//   void await_loaded(uint32_t w)     returns once w has its value; w is computed from loads
//   const T *kept_global(const T *p)  p; the compiler forms it here and not where it is used
//   uint32_t atomic_inc_acq_rel(p, limit)  stores old >= limit ? 0 : old + 1 and returns old; has
//                                          gpu scope, acquires and releases
//   uint32_t atomic_add_acq_rel(p, v)      stores old + v and returns old; orders likewise
//   void fence_gpu()                  orders this thread's accesses: acquires and releases at gpu
//                                     scope
#pragma once

#include <cstring>
#include <type_traits>

#include "kernels/arch/thread.cuh"

namespace assay::ASSAY_TARGET::arch {
struct alignas(8) Vec2 {
  uint32_t x, y;
};
struct alignas(16) Vec4 {
  uint32_t x, y, z, w;
};
} // namespace assay::ASSAY_TARGET::arch

#if ASSAY_IS_CUDA
#include "kernels/arch/cuda/load_store.cuh"
#else
#include "kernels/arch/simt/load_store.cuh"
#endif
