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

float widen(uint32_t bits, int exponent_bits, int fraction_bits) {
  int bias = (1 << (exponent_bits - 1)) - 1;
  int field = static_cast<int>(bits >> fraction_bits) & ((1 << exponent_bits) - 1);
  double fraction = bits & ((1u << fraction_bits) - 1);
  double magnitude;
  if (field == (1 << exponent_bits) - 1)
    magnitude = fraction != 0 ? std::numeric_limits<double>::quiet_NaN()
                              : std::numeric_limits<double>::infinity();
  else if (field == 0)
    magnitude = std::ldexp(fraction, 1 - bias - fraction_bits);
  else
    magnitude = std::ldexp(fraction + std::ldexp(1.0, fraction_bits), field - bias - fraction_bits);
  return static_cast<float>(bits >> (exponent_bits + fraction_bits) & 1 ? -magnitude : magnitude);
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
  if ((bits & 0x7f) == 0x7f) return std::numeric_limits<float>::quiet_NaN();
  int field = bits >> 3 & 15, fraction = bits & 7;
  double magnitude = field == 0 ? std::ldexp(fraction, -9) : std::ldexp(8 + fraction, field - 10);
  return static_cast<float>(bits & 0x80 ? -magnitude : magnitude);
}

} // namespace

uint32_t to_bits(Dtype dtype, float value) {
  uint32_t x = std::bit_cast<uint32_t>(value);
  if (dtype == Dtype::kFp32) return x;
  if (dtype == Dtype::kFp16) return narrow(value, 5, 10);
  if (dtype == Dtype::kE4m3) return narrow_e4m3(value);
  if (dtype == Dtype::kE5m2) return narrow(value, 5, 2);
  if (std::isnan(value)) return 0x7f81;
  // bf16 is the upper half of fp32: round the lower half away, to even.
  uint32_t rounded = (x + 0x7fff + (x >> 16 & 1)) >> 16;
  return (rounded & 0x7fff) >= 0x7f80 ? (rounded & 0x8000) | 0x7f7f : rounded;
}
float from_bits(Dtype dtype, uint32_t bits) {
  if (dtype == Dtype::kFp32) return std::bit_cast<float>(bits);
  if (dtype == Dtype::kE4m3) return widen_e4m3(bits);
  if (dtype == Dtype::kE5m2) return widen(bits, 5, 2);
  return dtype == Dtype::kFp16 ? widen(bits, 5, 10) : widen(bits, 8, 7);
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
