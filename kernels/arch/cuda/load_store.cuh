// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "kernels/arch/cuda/words.cuh"

namespace assay::n_cuda::arch {
namespace detail {

// NOTE: the 128-byte hint makes L2 fetch the whole line, which neighbouring lanes read next.
ASSAY_DEVICE unsigned char load_streaming(const unsigned char *p) { return __ldcs(p); }
ASSAY_DEVICE unsigned short load_streaming(const unsigned short *p) { return __ldcs(p); }
ASSAY_DEVICE unsigned int load_streaming(const unsigned int *p) {
  unsigned int v;
  asm volatile("ld.global.L1::no_allocate.L2::128B.u32 %0, [%1];"
               : "=r"(v)
               : "l"(__cvta_generic_to_global(p))
               : "memory");
  return v;
}
ASSAY_DEVICE uint2 load_streaming(const uint2 *p) {
  uint2 v;
  asm volatile("ld.global.L1::no_allocate.L2::128B.v2.u32 {%0, %1}, [%2];"
               : "=r"(v.x), "=r"(v.y)
               : "l"(__cvta_generic_to_global(p))
               : "memory");
  return v;
}
ASSAY_DEVICE uint4 load_streaming(const uint4 *p) {
  uint4 v;
  asm volatile("ld.global.L1::no_allocate.L2::128B.v4.u32 {%0, %1, %2, %3}, [%4];"
               : "=r"(v.x), "=r"(v.y), "=r"(v.z), "=r"(v.w)
               : "l"(__cvta_generic_to_global(p))
               : "memory");
  return v;
}

} // namespace detail

template <class T>
ASSAY_DEVICE T global_load(const T *p) {
  return detail::from_word<T>(*reinterpret_cast<const detail::WordOf<T> *>(p));
}
template <class T>
ASSAY_DEVICE T global_load_streaming(const T *p) {
  return detail::from_word<T>(
      detail::load_streaming(reinterpret_cast<const detail::WordOf<T> *>(p)));
}
template <class T>
ASSAY_DEVICE T global_load_readonly(const T *p) {
  return detail::from_word<T>(__ldg(reinterpret_cast<const detail::WordOf<T> *>(p)));
}
template <class T>
ASSAY_DEVICE void global_store(T *p, std::type_identity_t<T> value) {
  auto *word = reinterpret_cast<detail::WordOf<T> *>(p);
  if constexpr (sizeof(T) == 16)
    __stwb(word, detail::to_word(value)); // an assignment may become four stores
  else
    *word = detail::to_word(value);
}

/// Uses w where no optimiser removes the use: the hardware stalls a warp at the first use of what
/// it loaded.
ASSAY_DEVICE void await_loaded(uint32_t word) {
  asm volatile("{ .reg .pred p; setp.eq.u32 p, %0, 0x7fc0dead; @p nanosleep.u32 0; }" ::"r"(word));
}

template <class T>
ASSAY_DEVICE const T *kept_global(const T *p) {
  asm volatile("" : "+l"(p));
  __builtin_assume(__isGlobal(p)); // the asm hides that from the compiler
  return p;
}

ASSAY_DEVICE uint32_t atomic_inc_acq_rel(uint32_t *p, uint32_t limit) {
  uint32_t old;
  asm volatile("atom.acq_rel.gpu.global.inc.u32 %0, [%1], %2;"
               : "=r"(old)
               : "l"(__cvta_generic_to_global(p)), "r"(limit)
               : "memory");
  return old;
}
ASSAY_DEVICE uint32_t atomic_add_acq_rel(uint32_t *p, uint32_t value) {
  uint32_t old;
  asm volatile("atom.acq_rel.gpu.global.add.u32 %0, [%1], %2;"
               : "=r"(old)
               : "l"(__cvta_generic_to_global(p)), "r"(value)
               : "memory");
  return old;
}
ASSAY_DEVICE void fence_gpu() { asm volatile("fence.acq_rel.gpu;" ::: "memory"); }

} // namespace assay::n_cuda::arch
