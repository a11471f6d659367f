// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <type_traits>

#include "kernels/arch/simt/block_fma.h"
#include "kernels/simt/device.h"

namespace assay::n_simt::arch {
namespace detail {

// kernels/arch/simt/mma.cpp
struct LdmatrixArgs {
  const void *row;
  bool transposed;
};
struct MmaArgs {
  const uint32_t *a;
  const uint32_t *b;
};
void apply_ldmatrix(const simt::WarpCall &call);
void apply_movmatrix(const simt::WarpCall &call);
template <MmaFormat kFormat>
void apply_mma(const simt::WarpCall &call);
void apply_field_mma(const simt::WarpCall &call); // field_mma.cpp

template <int kMatrices>
inline void ldmatrix(uint32_t (&r)[kMatrices], bool transposed, const void *row, simt::Site site) {
  const LdmatrixArgs args{row, transposed};
  simt::warp_collective(
      {simt::Collective::kLdmatrix, kFullMask, sizeof r, &args, r, kMatrices, &apply_ldmatrix},
      site);
}

} // namespace detail

inline void ldmatrix_x1(uint32_t (&r)[1], const void *shared_row,
                        simt::Site site = simt::Site::here()) {
  detail::ldmatrix(r, false, shared_row, site);
}
inline void ldmatrix_x2(uint32_t (&r)[2], const void *shared_row,
                        simt::Site site = simt::Site::here()) {
  detail::ldmatrix(r, false, shared_row, site);
}
inline void ldmatrix_x4(uint32_t (&r)[4], const void *shared_row,
                        simt::Site site = simt::Site::here()) {
  detail::ldmatrix(r, false, shared_row, site);
}
inline void ldmatrix_x1_trans(uint32_t (&r)[1], const void *shared_row,
                              simt::Site site = simt::Site::here()) {
  detail::ldmatrix(r, true, shared_row, site);
}
inline void ldmatrix_x2_trans(uint32_t (&r)[2], const void *shared_row,
                              simt::Site site = simt::Site::here()) {
  detail::ldmatrix(r, true, shared_row, site);
}
inline void ldmatrix_x4_trans(uint32_t (&r)[4], const void *shared_row,
                              simt::Site site = simt::Site::here()) {
  detail::ldmatrix(r, true, shared_row, site);
}

inline uint32_t movmatrix_trans(uint32_t r, simt::Site site = simt::Site::here()) {
  uint32_t result;
  simt::warp_collective(
      {simt::Collective::kMovmatrix, kFullMask, 4, &r, &result, 0, &detail::apply_movmatrix}, site);
  return result;
}

template <class E>
inline void mma_m16n8k16(float (&c)[4], const uint32_t (&a)[4], const uint32_t (&b)[2],
                         simt::Site site = simt::Site::here()) {
  static_assert(std::is_same_v<E, bf16> || std::is_same_v<E, fp16>);
  constexpr MmaFormat kFormat = std::is_same_v<E, bf16> ? MmaFormat::kBf16 : MmaFormat::kFp16;
  const detail::MmaArgs args{a, b};
  simt::warp_collective(
      {simt::Collective::kMma, kFullMask, sizeof c, &args, c, 0, &detail::apply_mma<kFormat>},
      site);
}

/// Exact. A holds literals; B holds literals or packed numbers.
template <class E>
inline void mma_m16n8k16(field (&c)[4], const uint32_t (&a)[4], const uint32_t (&b)[2],
                         simt::Site site = simt::Site::here()) {
  static_assert(std::is_same_v<E, field16>);
  const detail::MmaArgs args{a, b};
  simt::warp_collective(
      {simt::Collective::kMma, kFullMask, sizeof c, &args, c, 0, &detail::apply_field_mma}, site);
}

} // namespace assay::n_simt::arch
