// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cmath>

#include "kernels/arch/simt/field.h"

namespace assay::n_simt::arch {
namespace detail {

// Turns a subnormal number into a zero of its sign.
inline float flush(float x) {
  const uint32_t bits = bits_of(x);
  return (bits & 0x7f800000u) == 0 ? float_of(bits & 0x80000000u) : x;
}

} // namespace detail

inline float exp2_approx(float x) {
  if (x != x) return detail::float_of(detail::kCanonicalNan);
  return detail::flush(static_cast<float>(std::exp2(static_cast<double>(detail::flush(x)))));
}

inline float log2_approx(float x) {
  x = detail::flush(x);
  if (x != x || x < 0.0f) return detail::float_of(detail::kCanonicalNan);
  if (x == 0.0f) return detail::float_of(0xff800000u);
  return static_cast<float>(std::log2(static_cast<double>(x)));
}

inline float rcp_approx(float x) {
  if (x != x) return detail::float_of(detail::kCanonicalNan);
  x = detail::flush(x);
  if (x == 0.0f) return detail::float_of((detail::bits_of(x) & 0x80000000u) | 0x7f800000u);
  return detail::flush(1.0f / x);
}

inline float max_num(float a, float b) {
  if (a != a) return b != b ? detail::float_of(detail::kCanonicalNan) : b;
  if (b != b) return a;
  if (a == b) return detail::bits_of(a) >> 31 ? b : a; // +0 over -0
  return a > b ? a : b;
}
inline float max_nan(float a, float b) {
  return a != a || b != b ? detail::float_of(detail::kCanonicalNan) : max_num(a, b);
}
inline float fma_rn(float a, float b, float c) { return std::fma(a, b, c); }

} // namespace assay::n_simt::arch
