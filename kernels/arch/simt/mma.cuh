// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <type_traits>

#include "kernels/arch/simt/block_fma.h"
#include "kernels/simt/device.h"

namespace assay::n_simt::arch {
namespace detail {

// kernels/arch/simt/mma.cpp
void ldmatrix(uint32_t *r, int matrices, bool transposed, const void *row, simt::Site site);
uint32_t movmatrix(uint32_t r, simt::Site site);
void mma(float *c, const uint32_t *a, const uint32_t *b, MmaFormat format, simt::Site site);

} // namespace detail

inline void ldmatrix_x1(uint32_t (&r)[1], const void *shared_row,
                        simt::Site site = simt::Site::here()) {
  detail::ldmatrix(r, 1, false, shared_row, site);
}
inline void ldmatrix_x2(uint32_t (&r)[2], const void *shared_row,
                        simt::Site site = simt::Site::here()) {
  detail::ldmatrix(r, 2, false, shared_row, site);
}
inline void ldmatrix_x4(uint32_t (&r)[4], const void *shared_row,
                        simt::Site site = simt::Site::here()) {
  detail::ldmatrix(r, 4, false, shared_row, site);
}
inline void ldmatrix_x1_trans(uint32_t (&r)[1], const void *shared_row,
                              simt::Site site = simt::Site::here()) {
  detail::ldmatrix(r, 1, true, shared_row, site);
}
inline void ldmatrix_x2_trans(uint32_t (&r)[2], const void *shared_row,
                              simt::Site site = simt::Site::here()) {
  detail::ldmatrix(r, 2, true, shared_row, site);
}
inline void ldmatrix_x4_trans(uint32_t (&r)[4], const void *shared_row,
                              simt::Site site = simt::Site::here()) {
  detail::ldmatrix(r, 4, true, shared_row, site);
}

inline uint32_t movmatrix_trans(uint32_t r, simt::Site site = simt::Site::here()) {
  return detail::movmatrix(r, site);
}

template <class E>
inline void mma_m16n8k16(float (&c)[4], const uint32_t (&a)[4], const uint32_t (&b)[2],
                         simt::Site site = simt::Site::here()) {
  static_assert(std::is_same_v<E, bf16> || std::is_same_v<E, fp16>);
  detail::mma(c, a, b, std::is_same_v<E, bf16> ? MmaFormat::kBf16 : MmaFormat::kFp16, site);
}

} // namespace assay::n_simt::arch
