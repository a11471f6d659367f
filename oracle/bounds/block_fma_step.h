// SPDX-License-Identifier: Apache-2.0
// Internal: the arithmetic of block_fma.h, a step at a time. One text for the host and for a GPU.
#pragma once

#include <cstdint>
#include <cstring>

#include "oracle/exact/format.h"

namespace assay::oracle::block_fma {

inline constexpr int kMaxBlock = 64;
// Shifted left by F, a product of two 11-bit significands, and the accumulator's 24 bits, fit 63.
inline constexpr int kMaxFractionBits = 38;
inline constexpr int kDigits = 10; ///< fraction bits of fp16, more than bf16 has
inline constexpr int kNoExponent = -100000;

/** significand * 2^(exponent - kDigits), the significand below 2^11 in magnitude. */
struct Operand {
  int64_t significand;
  int exponent;
};

ORACLE_HOST_DEVICE inline Operand operand(float x, int min_exponent) {
  if (x == 0.0f) return {0, kNoExponent};
  uint32_t bits;
  memcpy(&bits, &x, sizeof bits);
  // An fp32 subnormal has field 0 and lies below every format's smallest normal exponent.
  const int field = static_cast<int>(bits >> 23 & 255);
  const int exponent = field - 127 > min_exponent ? field - 127 : min_exponent;
  return {static_cast<int64_t>(x * power_of_two(kDigits - exponent)), exponent};
}

/** The fp32 accumulator: significand * 2^(exponent - 23), below 2^24 in magnitude. */
struct Accumulator {
  int64_t significand = 0;
  int exponent = kNoExponent;

  ORACLE_HOST_DEVICE double value() const {
    return ldexp(static_cast<double>(significand), exponent - 23);
  }
};

/** x / 2^shift towards zero; 0 <= shift. Without a branch: the innermost step of the replay. */
ORACLE_HOST_DEVICE inline int64_t shift_right(int64_t x, int shift) {
  const int64_t sign = x >> 63;
  const int64_t magnitude = ((x ^ sign) - sign) >> (shift < 63 ? shift : 63);
  return (magnitude ^ sign) - sign;
}

ORACLE_HOST_DEVICE inline int bit_length(int64_t x) {
  const auto magnitude = static_cast<uint64_t>(x < 0 ? -x : x);
#ifdef __CUDA_ARCH__
  return 64 - __clzll(static_cast<long long>(magnitude));
#else
  return magnitude == 0 ? 0 : 64 - __builtin_clzll(magnitude);
#endif
}

/** Everything in units of 2^(top - F): the addends truncated to it, their sum exact. */
ORACLE_HOST_DEVICE inline Accumulator step(const Accumulator &c, const Operand *a, const Operand *b,
                                           int count, int fraction_bits) {
  int top = c.exponent;
  for (int i = 0; i < count; ++i) {
    const int exponent = a[i].exponent + b[i].exponent;
    top = exponent > top ? exponent : top;
  }
  if (top < kNoExponent / 2) return {};
  int64_t sum = shift_right(c.significand << fraction_bits, top - c.exponent + 23);
  for (int i = 0; i < count; ++i) {
    const int64_t product = a[i].significand * b[i].significand;
    sum +=
        shift_right(product << fraction_bits, top - (a[i].exponent + b[i].exponent) + 2 * kDigits);
  }
  if (sum == 0) return {};
  // Truncated to fp32: 24 significant bits, fewer below 2^-126.
  const int leading = top - fraction_bits + bit_length(sum) - 1;
  const int exponent = leading > -126 ? leading : -126;
  const int drop = exponent - 23 - (top - fraction_bits);
  const int64_t significand = drop >= 0 ? shift_right(sum, drop) : sum << -drop;
  if (significand == 0) return {};
  return {significand, exponent};
}

} // namespace assay::oracle::block_fma
