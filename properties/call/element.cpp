// SPDX-License-Identifier: Apache-2.0
#include "properties/call/element.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <limits>

namespace assay {
namespace {

/// Rounds to a format of at most 5 exponent bits, saturating to finite.
uint32_t narrow(float value, int exponent_bits, int fraction_bits) {
  uint32_t x = std::bit_cast<uint32_t>(value);
  uint32_t sign = (x >> 31) << (exponent_bits + fraction_bits);
  // Capped well beyond the range: infinity saturates like any large number.
  double magnitude = std::min(std::fabs(double(value)), 0x1p20);
  if (std::isnan(value)) return sign | ((1u << exponent_bits) - 1) << fraction_bits | 1u;
  int bias = (1 << (exponent_bits - 1)) - 1;
  int exponent = magnitude == 0 ? 1 - bias : std::max(std::ilogb(magnitude), 1 - bias);
  // The value in units of the last place; nearbyint rounds half to even.
  double units = std::nearbyint(std::ldexp(magnitude, fraction_bits - exponent));
  uint32_t bits = static_cast<uint32_t>(std::min(units, 1e9)) +
                  (static_cast<uint32_t>(exponent + bias - 1) << fraction_bits);
  uint32_t largest = (((1u << exponent_bits) - 1) << fraction_bits) - 1;
  return sign | std::min(bits, largest);
}

/// Rounds to fp16, saturating to finite; as narrow(value, 5, 10), which is slower.
uint32_t narrow_fp16(float value) {
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
uint32_t narrow_e4m3(float value) {
  uint32_t sign = std::signbit(value) ? 0x80 : 0;
  if (std::isnan(value)) return sign | 0x7f;
  double magnitude = std::min(std::fabs(double(value)), 448.0);
  int exponent = magnitude == 0 ? -6 : std::max(std::ilogb(magnitude), -6);
  auto units = static_cast<uint32_t>(std::nearbyint(std::ldexp(magnitude, 3 - exponent)));
  return sign | (units + (static_cast<uint32_t>(exponent + 6) << 3));
}

float widen_e4m3(uint32_t bits) {
  return (bits & 0x7f) == 0x7f ? std::numeric_limits<float>::quiet_NaN() : rebias(bits, 4, 3);
}

} // namespace

uint32_t to_bits(Dtype dtype, float value) {
  uint32_t x = std::bit_cast<uint32_t>(value);
  if (dtype == Dtype::kFp32) return x;
  if (dtype == Dtype::kFp16) return narrow_fp16(value);
  if (dtype == Dtype::kE4m3) return narrow_e4m3(value);
  if (dtype == Dtype::kE5m2) return narrow(value, 5, 2);
  if (std::isnan(value)) return 0x7f81;
  // Round the lower half of fp32 away, to even.
  uint32_t rounded = (x + 0x7fff + (x >> 16 & 1)) >> 16;
  return (rounded & 0x7fff) >= 0x7f80 ? (rounded & 0x8000) | 0x7f7f : rounded;
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
