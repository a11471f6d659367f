// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "kernels/arch/cuda/words.cuh"

namespace assay::n_cuda::arch {

ASSAY_DEVICE uint32_t cluster_rank() {
  uint32_t rank = 0;
#if __CUDA_ARCH__ >= 900
  asm volatile("mov.u32 %0, %%cluster_ctarank;" : "=r"(rank));
#endif
  return rank;
}
ASSAY_DEVICE uint32_t cluster_size() {
  uint32_t size = 1;
#if __CUDA_ARCH__ >= 900
  asm volatile("mov.u32 %0, %%cluster_nctarank;" : "=r"(size));
#endif
  return size;
}
ASSAY_DEVICE void cluster_barrier() {
#if __CUDA_ARCH__ >= 900
  asm volatile("barrier.cluster.arrive.release.aligned;\n"
               "barrier.cluster.wait.acquire.aligned;" ::
                   : "memory");
#else
  __trap();
#endif
}

namespace detail {

/// The address in the shared window of the cluster of what block `rank` has there.
ASSAY_DEVICE uint32_t cluster_address(const void *p, uint32_t rank) {
  uint32_t address = static_cast<uint32_t>(__cvta_generic_to_shared(p));
#if __CUDA_ARCH__ >= 900
  asm volatile("mapa.shared::cluster.u32 %0, %0, %1;" : "+r"(address) : "r"(rank));
#endif
  return address;
}

} // namespace detail

template <class T>
ASSAY_DEVICE T cluster_load(const T *p, uint32_t rank) {
  static_assert(sizeof(T) == 4 || sizeof(T) == 8 || sizeof(T) == 16);
  uint32_t w[sizeof(T) / 4] = {};
#if __CUDA_ARCH__ >= 900
  const uint32_t from = detail::cluster_address(p, rank);
  if constexpr (sizeof(T) == 4)
    asm volatile("ld.shared::cluster.u32 %0, [%1];" : "=r"(w[0]) : "r"(from) : "memory");
  else if constexpr (sizeof(T) == 8)
    asm volatile("ld.shared::cluster.v2.u32 {%0, %1}, [%2];"
                 : "=r"(w[0]), "=r"(w[1])
                 : "r"(from)
                 : "memory");
  else
    asm volatile("ld.shared::cluster.v4.u32 {%0, %1, %2, %3}, [%4];"
                 : "=r"(w[0]), "=r"(w[1]), "=r"(w[2]), "=r"(w[3])
                 : "r"(from)
                 : "memory");
#endif
  T value;
  memcpy(&value, w, sizeof value);
  return value;
}

template <class T>
ASSAY_DEVICE void cluster_store(T *p, std::type_identity_t<T> value, uint32_t rank) {
  static_assert(sizeof(T) == 4 || sizeof(T) == 8 || sizeof(T) == 16);
  uint32_t w[sizeof(T) / 4];
  memcpy(w, &value, sizeof value);
#if __CUDA_ARCH__ >= 900
  const uint32_t to = detail::cluster_address(p, rank);
  if constexpr (sizeof(T) == 4)
    asm volatile("st.shared::cluster.u32 [%0], %1;" ::"r"(to), "r"(w[0]) : "memory");
  else if constexpr (sizeof(T) == 8)
    asm volatile("st.shared::cluster.v2.u32 [%0], {%1, %2};" ::"r"(to), "r"(w[0]), "r"(w[1])
                 : "memory");
  else
    asm volatile("st.shared::cluster.v4.u32 [%0], {%1, %2, %3, %4};" ::"r"(to), "r"(w[0]),
                 "r"(w[1]), "r"(w[2]), "r"(w[3])
                 : "memory");
#endif
}

ASSAY_DEVICE void mbarrier_arrive_cluster(Mbarrier *b, uint32_t rank) {
#if __CUDA_ARCH__ >= 900
  asm volatile("mbarrier.arrive.release.cluster.shared::cluster.b64 _, [%0];" ::"r"(
                   detail::cluster_address(b, rank))
               : "memory");
#else
  __trap();
#endif
}
ASSAY_DEVICE void mbarrier_wait_cluster(Mbarrier *b, uint32_t parity) {
#if __CUDA_ARCH__ >= 900
  ASSAY_MBARRIER_WAIT("mbarrier.try_wait.parity.acquire.cluster.shared::cta.b64");
#else
  __trap();
#endif
}

template <int kRank>
ASSAY_DEVICE void tensor_copy_multicast(void *dst, const TensorMap &map, const int32_t (&at)[kRank],
                                        Mbarrier *b, uint16_t blocks) {
  static_assert(kRank >= 1 && kRank <= kMaxTensorRank);
#if defined(__CUDA_ARCH_FEAT_SM90_ALL)
  const auto to = static_cast<uint32_t>(__cvta_generic_to_shared(dst));
  const uint32_t barrier = detail::mbarrier_address(b);
  ASSAY_TENSOR_COPY(".multicast::cluster", ", %3");
#else
  __trap();
#endif
}

} // namespace assay::n_cuda::arch
