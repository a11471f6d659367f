// SPDX-License-Identifier: Apache-2.0
// Elements of every dtype as the bits that they are.
#pragma once

#include <algorithm>
#include <bit>
#include <cstdint>

#include "properties/case/problem.h"

namespace assay {

float from_bits(Dtype dtype, uint32_t bits);

constexpr int element_size(Dtype dtype) {
  constexpr int kSizes[] = {2, 2, 4, 1, 1}; // by Dtype
  return kSizes[static_cast<int>(dtype)];
}
constexpr float largest_finite(Dtype dtype) {
  constexpr float kLargest[] = {65504.0f, 0x1.fep127f, 0x1.fffffep127f, 448.0f, 57344.0f};
  return kLargest[static_cast<int>(dtype)]; // by Dtype
}

/// Rounds to fp16, saturating to finite.
constexpr uint32_t fp16_bits(float value) {
  constexpr uint32_t kHalf = 0x3f000000, kMinNormal = 0x38800000, kTooLarge = 0x477ff000;
  const uint32_t x = std::bit_cast<uint32_t>(value), sign = x >> 16 & 0x8000;
  const uint32_t magnitude = x & 0x7fffffff;
  if (magnitude > 0x7f800000) return sign | 0x7c01;
  if (magnitude >= kTooLarge) return sign | 0x7bff;
  // One half has the spacing of fp16's subnormals: adding it rounds to them.
  if (magnitude < kMinNormal)
    return sign | (std::bit_cast<uint32_t>(std::bit_cast<float>(magnitude) + 0.5f) - kHalf);
  return sign | (magnitude + 0xfff + (magnitude >> 13 & 1) - 0x38000000) >> 13;
}

constexpr uint32_t bf16_bits(float value) {
  if (value != value) return 0x7f81;
  const uint32_t x = std::bit_cast<uint32_t>(value);
  // Round the lower half of fp32 away, to even.
  const uint32_t rounded = (x + 0x7fff + (x >> 16 & 1)) >> 16;
  return (rounded & 0x7fff) >= 0x7f80 ? (rounded & 0x8000) | 0x7f7f : rounded;
}

/// Rounds to a format of 8 bits whose smallest normal number is 2^min_exponent, up to `largest`.
constexpr uint32_t fp8_bits(float value, int min_exponent, int fraction_bits, uint32_t largest,
                            uint32_t nan) {
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

/// Element bits of a dtype, in the low bits of a word: round to nearest even, saturating to finite.
constexpr uint32_t to_bits(Dtype dtype, float value) {
  if (dtype == Dtype::kFp32) return std::bit_cast<uint32_t>(value);
  if (dtype == Dtype::kFp16) return fp16_bits(value);
  // e4m3 has no infinity: its largest magnitudes go on to 448, and all ones is NaN.
  if (dtype == Dtype::kE4m3) return fp8_bits(value, -6, 3, 0x7e, 0x7f);
  if (dtype == Dtype::kE5m2) return fp8_bits(value, -14, 2, 0x7b, 0x7d);
  return bf16_bits(value);
}

} // namespace assay
