// SPDX-License-Identifier: Apache-2.0
// Wrong arithmetic that .mutant files call by name.
#pragma once

#include <bit>
#include <cmath>
#include <cstdint>

namespace assay::mutants {

inline int32_t one_less(int32_t n) { return n > 0 ? n - 1 : 0; }

/// Offset of kv head `head ^ 1`, staying inside an even number of heads.
inline int64_t neighbour(int32_t head, int64_t stride) { return (head ^ 1) * stride; }

inline uint64_t product_32(uint64_t page, uint64_t stride) {
  return static_cast<uint32_t>(page * stride);
}

template <class R>
R one_if_not_empty(R lse) {
  return lse == R(-__builtin_inff()) ? R(0.0f) : R(1.0f);
}

template <class R>
R zero_if_empty(R lse) {
  return lse == R(-__builtin_inff()) ? R(0.0f) : lse;
}

inline int32_t one_less_if(bool condition, int32_t n) { return condition ? one_less(n) : n; }

/// In place of the larger one.
template <class R>
R least(R a, R b) {
  return b < a ? b : a;
}

inline int swap_3_4(bool condition, int token) {
  return condition && (token == 3 || token == 4) ? 7 - token : token;
}

// Rounding mistakes, below, do not exist in an exact arithmetic: there they change nothing.

/// Keeps the leading `bits` of the significand, rounding to nearest, ties away.
inline float keep_bits(float x, int bits) {
  const uint32_t unit = 1u << (24 - bits);
  return std::bit_cast<float>((std::bit_cast<uint32_t>(x) + unit / 2) & ~(unit - 1));
}

template <class R>
R keep_bits(R x, int) {
  return x;
}

/// Finite x rounded to bf16, to nearest even; infinities stay.
inline float to_bf16(float x) {
  const uint32_t bits = std::bit_cast<uint32_t>(x);
  return std::bit_cast<float>((bits + 0x7fffu + (bits >> 16 & 1u)) & 0xffff0000u);
}

template <class R>
R to_bf16(R x) {
  return x;
}

inline float magnitude(float x) { return std::fabs(x); }

template <class R>
float magnitude(R) {
  return 1.0f;
}

/// Magnitudes from low to high are off by 2^-6 of themselves.
struct OffBetween {
  float low, high;
  float operator()(float x) const {
    return std::fabs(x) >= low && std::fabs(x) < high ? x * (1.0f + 0x1p-6f) : x;
  }
  template <class R>
  R operator()(R x) const {
    return x;
  }
};

inline float truncate_bf16(float x) {
  return std::bit_cast<float>(std::bit_cast<uint32_t>(x) & 0xffff0000u);
}

template <class R>
R truncate_bf16(R x) {
  return x;
}

/// Error 2^-11 sin(2 pi x): what a short polynomial leaves, exact at integers and at -inf.
inline float coarse_exp2(float x) {
  if (!std::isfinite(x)) return std::exp2(x);
  const float fraction = x - std::floor(x);
  return std::exp2(x) * (1.0f + 0x1p-11f * std::sin(6.2831853f * fraction));
}
template <class R>
R coarse_exp2(R x) {
  return exp2_approx(x);
}

/// As a unit without subnormals of fp16 does.
inline float flush_below(float x, float least) { return x < least ? 0.0f : x; }
template <class R>
R flush_below(R x, float) {
  return x;
}

} // namespace assay::mutants
