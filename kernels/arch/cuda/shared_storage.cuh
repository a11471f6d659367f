// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "kernels/arch/cuda/words.cuh"

namespace assay::n_cuda::arch {

template <class T>
ASSAY_DEVICE T &shared_storage() {
  static_assert(alignof(T) <= 1024);
  extern __shared__ __align__(1024) unsigned char dynamic_shared[];
  return *reinterpret_cast<T *>(dynamic_shared);
}

template <class T>
ASSAY_DEVICE T *kept(T *p) {
  asm volatile("" : "+l"(p));
  return p;
}

template <class T>
ASSAY_DEVICE T shared_load(const T *p) {
  using Word = detail::WordOf<T>;
  return detail::from_word<T>(*reinterpret_cast<const Word *>(p));
}
template <class T>
ASSAY_DEVICE void shared_store(T *p, std::type_identity_t<T> value) {
  using Word = detail::WordOf<T>;
  *reinterpret_cast<Word *>(p) = detail::to_word(value);
}

} // namespace assay::n_cuda::arch
