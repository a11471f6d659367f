// SPDX-License-Identifier: Apache-2.0
#include "properties/call/element.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <limits>

namespace assay {
namespace {

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

float widen_e4m3(uint32_t bits) {
  return (bits & 0x7f) == 0x7f ? std::numeric_limits<float>::quiet_NaN() : rebias(bits, 4, 3);
}

} // namespace

float from_bits(Dtype dtype, uint32_t bits) {
  if (dtype == Dtype::kFp32) return std::bit_cast<float>(bits);
  if (dtype == Dtype::kE4m3) return widen_e4m3(bits);
  if (dtype == Dtype::kE5m2) return widen_fp16(bits << 8);
  // bf16 is the upper half of fp32.
  return dtype == Dtype::kFp16 ? widen_fp16(bits) : std::bit_cast<float>(bits << 16);
}

} // namespace assay
