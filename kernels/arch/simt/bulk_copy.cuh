// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "kernels/simt/device.h"

namespace assay::n_simt::arch {
namespace detail {

// kernels/arch/simt/bulk_copy.cpp
void bulk_copy(void *dst, const void *src, uint32_t bytes, Mbarrier *b, simt::Site site);
void tensor_copy(void *dst, const TensorMap &map, const int32_t *at, int rank, Mbarrier *b,
                 simt::Site site, uint32_t blocks = 0);

} // namespace detail

inline void bulk_copy(void *dst, const void *src, uint32_t bytes, Mbarrier *b,
                      simt::Site site = simt::Site::here()) {
  detail::bulk_copy(dst, src, bytes, b, site);
}
template <int kRank>
inline void tensor_copy(void *dst, const TensorMap &map, const int32_t (&at)[kRank], Mbarrier *b,
                        simt::Site site = simt::Site::here()) {
  static_assert(kRank >= 1 && kRank <= kMaxTensorRank);
  detail::tensor_copy(dst, map, at, kRank, b, site);
}
inline void prefetch_tensor_map(const TensorMap &) {}

} // namespace assay::n_simt::arch
