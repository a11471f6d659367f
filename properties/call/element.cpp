// SPDX-License-Identifier: Apache-2.0
#include "properties/call/element.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <limits>

namespace assay {
namespace {

/// Rounds to a format of 8 bits whose smallest normal number is 2^min_exponent, up to `largest`.
uint32_t narrow(float value, int min_exponent, int fraction_bits, uint32_t largest, uint32_t nan) {
  const uint32_t x = std::bit_cast<uint32_t>(value), sign = x >> 24 & 0x80;
  const uint32_t magnitude = x & 0x7fffffff;
  if (magnitude > 0x7f800000) return sign | nan;
  const int dropped = 23 - fraction_bits;
  uint32_t bits = 0;
  if (magnitude < static_cast<uint32_t>(127 + min_exponent) << 23) {
    // This has the spacing of the format's subnormals: adding it rounds to them.
    const auto coarse = static_cast<uint32_t>(127 + min_exponent + dropped) << 23;
    bits = std::bit_cast<uint32_t>(std::bit_cast<float>(magnitude) + std::bit_cast<float>(coarse)) -
           coarse;
  } else {
    const uint32_t rounded = magnitude + (1u << (dropped - 1)) - 1 + (magnitude >> dropped & 1);
    bits = (rounded - (static_cast<uint32_t>(126 + min_exponent) << 23)) >> dropped;
  }
  return sign | std::min(bits, largest);
}

/// Sign and magnitude put where fp32 has its own; a power of two, an exact factor, mends the bias.
float rebias(uint32_t bits, int exponent_bits, int fraction_bits) {
  const uint32_t magnitude = bits & ((1u << (exponent_bits + fraction_bits)) - 1);
  const uint32_t sign = bits >> (exponent_bits + fraction_bits) << 31;
  const float factor = std::bit_cast<float>((254u + 1 - (1u << (exponent_bits - 1))) << 23);
  const float value = std::bit_cast<float>(magnitude << (23 - fraction_bits)) * factor;
  return std::bit_cast<float>(std::bit_cast<uint32_t>(value) | sign);
}

/// e5m2 is the upper half of fp16.
float widen_fp16(uint32_t bits) {
  if ((bits & 0x7c00) != 0x7c00) return rebias(bits, 5, 10);
  if (bits & 0x3ff) return std::numeric_limits<float>::quiet_NaN();
  return std::copysign(std::numeric_limits<float>::infinity(), bits & 0x8000 ? -1.0f : 1.0f);
}

/// e4m3 has no infinity: its largest magnitudes go on to 448, and all ones is NaN.
uint32_t narrow_e4m3(float value) { return narrow(value, -6, 3, 0x7e, 0x7f); }
uint32_t narrow_e5m2(float value) { return narrow(value, -14, 2, 0x7b, 0x7d); }

float widen_e4m3(uint32_t bits) {
  return (bits & 0x7f) == 0x7f ? std::numeric_limits<float>::quiet_NaN() : rebias(bits, 4, 3);
}

} // namespace

uint32_t to_bits(Dtype dtype, float value) {
  uint32_t x = std::bit_cast<uint32_t>(value);
  if (dtype == Dtype::kFp32) return x;
  if (dtype == Dtype::kFp16) return fp16_bits(value);
  if (dtype == Dtype::kE4m3) return narrow_e4m3(value);
  if (dtype == Dtype::kE5m2) return narrow_e5m2(value);
  return bf16_bits(value);
}
float from_bits(Dtype dtype, uint32_t bits) {
  if (dtype == Dtype::kFp32) return std::bit_cast<float>(bits);
  if (dtype == Dtype::kE4m3) return widen_e4m3(bits);
  if (dtype == Dtype::kE5m2) return widen_fp16(bits << 8);
  // bf16 is the upper half of fp32.
  return dtype == Dtype::kFp16 ? widen_fp16(bits) : std::bit_cast<float>(bits << 16);
}
int element_size(Dtype dtype) {
  static constexpr int kSizes[] = {2, 2, 4, 1, 1}; // by Dtype
  return kSizes[static_cast<int>(dtype)];
}
float largest_finite(Dtype dtype) {
  static constexpr uint32_t kBits[] = {0x7bff, 0x7f7f, 0x7f7fffff, 0x7e, 0x7b}; // by Dtype
  return from_bits(dtype, kBits[static_cast<int>(dtype)]);
}

} // namespace assay
