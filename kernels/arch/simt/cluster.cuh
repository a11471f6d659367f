// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "kernels/simt/device.h"

namespace assay::n_simt::arch {

inline uint32_t cluster_rank() { return simt::thread_view.cluster_rank; }
inline uint32_t cluster_size() { return simt::thread_view.cluster_size; }
inline void cluster_barrier(simt::Site site = simt::Site::here()) { simt::cluster_barrier(site); }

template <class T>
inline T cluster_load(const T *p, uint32_t rank, simt::Site site = simt::Site::here()) {
  static_assert(sizeof(T) == 4 || sizeof(T) == 8 || sizeof(T) == 16);
  return detail::read_bytes(static_cast<const T *>(
      simt::cluster_access(simt::AccessKind::kRead, p, sizeof(T), rank, site)));
}
template <class T>
inline void cluster_store(T *p, std::type_identity_t<T> value, uint32_t rank,
                          simt::Site site = simt::Site::here()) {
  static_assert(sizeof(T) == 4 || sizeof(T) == 8 || sizeof(T) == 16);
  std::memcpy(simt::cluster_access(simt::AccessKind::kWrite, p, sizeof(T), rank, site), &value,
              sizeof(T));
}

inline void mbarrier_arrive_cluster(Mbarrier *b, uint32_t rank,
                                    simt::Site site = simt::Site::here()) {
  simt::mbarrier_arrive_cluster(b, rank, site);
}
inline void mbarrier_wait_cluster(Mbarrier *b, uint32_t parity,
                                  simt::Site site = simt::Site::here()) {
  simt::mbarrier_wait(b, parity, site, simt::Scope::kCluster);
}
template <int kRank>
inline void tensor_copy_multicast(void *dst, const TensorMap &map, const int32_t (&at)[kRank],
                                  Mbarrier *b, uint16_t blocks,
                                  simt::Site site = simt::Site::here()) {
  static_assert(kRank >= 1 && kRank <= kMaxTensorRank);
  detail::tensor_copy(dst, map, at, kRank, b, site, blocks);
}

} // namespace assay::n_simt::arch
