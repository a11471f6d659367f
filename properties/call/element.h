// SPDX-License-Identifier: Apache-2.0
// Elements of every dtype as the bits that they are.
#pragma once

#include <bit>
#include <cstdint>

#include "properties/case/problem.h"

namespace assay {

/// Element bits of a dtype, in the low bits of a word.
uint32_t to_bits(Dtype dtype, float value); ///< round to nearest even; saturates to finite
float from_bits(Dtype dtype, uint32_t bits);
int element_size(Dtype dtype);
float largest_finite(Dtype dtype);

/// Rounds to fp16, saturating to finite.
inline uint32_t fp16_bits(float value) {
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

inline uint32_t bf16_bits(float value) {
  if (value != value) return 0x7f81;
  const uint32_t x = std::bit_cast<uint32_t>(value);
  // Round the lower half of fp32 away, to even.
  const uint32_t rounded = (x + 0x7fff + (x >> 16 & 1)) >> 16;
  return (rounded & 0x7fff) >= 0x7f80 ? (rounded & 0x8000) | 0x7f7f : rounded;
}

} // namespace assay
