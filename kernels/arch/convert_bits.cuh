// SPDX-License-Identifier: Apache-2.0
// Conversions between fp32 and the small formats in integer code. simt always runs them; cuda runs
// them where the device has no instruction (fp8 before sm_89). They round to nearest even.
#pragma once

#include <cstring>

#include "kernels/arch/target.cuh"

namespace assay::ASSAY_TARGET::arch::detail {

ASSAY_HOST_DEVICE uint32_t bits_of(float value) {
  uint32_t bits;
  memcpy(&bits, &value, 4);
  return bits;
}
ASSAY_HOST_DEVICE float float_of(uint32_t bits) {
  float value;
  memcpy(&value, &bits, 4);
  return value;
}

inline constexpr uint32_t kCanonicalNan = 0x7fffffffu; // what the device returns for fp32 NaN

ASSAY_HOST_DEVICE float bf16_to_float(uint16_t bits) {
  return float_of(static_cast<uint32_t>(bits) << 16);
}

ASSAY_HOST_DEVICE uint16_t bf16_from_float(float value) {
  const uint32_t bits = bits_of(value);
  if ((bits & 0x7fffffffu) > 0x7f800000u) return 0x7fff;
  return static_cast<uint16_t>((bits + 0x7fffu + ((bits >> 16) & 1)) >> 16);
}

ASSAY_HOST_DEVICE float fp16_to_float(uint16_t bits) {
  const uint32_t sign = static_cast<uint32_t>(bits & 0x8000u) << 16, magnitude = bits & 0x7fffu;
  if (magnitude > 0x7c00u) return float_of(kCanonicalNan);
  if (magnitude == 0x7c00u) return float_of(sign | 0x7f800000u);
  // The fp16 bit pattern read with fp32's exponent bias is the value times 2^-112, exactly.
  return float_of(sign | bits_of(float_of(magnitude << 13) * 0x1p112f));
}

ASSAY_HOST_DEVICE uint16_t fp16_from_float(float value) {
  const uint32_t bits = bits_of(value), sign = (bits >> 16) & 0x8000u;
  uint32_t magnitude = bits & 0x7fffffffu;
  if (magnitude > 0x7f800000u) return 0x7fff;
  if (magnitude >= 0x47800000u) return static_cast<uint16_t>(sign | 0x7c00u); // 2^16
  if (magnitude < 0x38800000u) { // 2^-14: the ulp of 0.5 is fp16's smallest step
    const uint32_t rounded = bits_of(float_of(magnitude) + 0.5f) - 0x3f000000u;
    return static_cast<uint16_t>(sign | rounded);
  }
  magnitude += 0xfffu + ((magnitude >> 13) & 1);
  return static_cast<uint16_t>(sign | ((magnitude - (112u << 23)) >> 13));
}

// To one of the two fp8 formats. What is past the largest finite value becomes that value, also
// infinity.
template <uint32_t kMantissaBits, uint32_t kBias, uint8_t kLargest>
ASSAY_HOST_DEVICE uint8_t fp8_from_float(float value) {
  constexpr uint32_t kShift = 23 - kMantissaBits, kRebias = (127 - kBias) << 23;
  constexpr uint32_t kLargestBits = (static_cast<uint32_t>(kLargest) << kShift) + kRebias;
  constexpr uint32_t kSmallestNormal = (128 - kBias) << 23;
  // A power of two whose fp32 ulp is the format's smallest step.
  constexpr uint32_t kStepAligner = (127 + 23 + 1 - kBias - kMantissaBits) << 23;
  const uint32_t bits = bits_of(value), sign = (bits >> 24) & 0x80u;
  uint32_t magnitude = bits & 0x7fffffffu;
  if (magnitude > 0x7f800000u) return 0x7f;
  if (magnitude >= kLargestBits) return static_cast<uint8_t>(sign | kLargest);
  if (magnitude < kSmallestNormal) {
    const uint32_t rounded = bits_of(float_of(magnitude) + float_of(kStepAligner)) - kStepAligner;
    return static_cast<uint8_t>(sign | rounded);
  }
  magnitude += (1u << (kShift - 1)) - 1 + ((magnitude >> kShift) & 1);
  return static_cast<uint8_t>(sign | ((magnitude - kRebias) >> kShift));
}

ASSAY_HOST_DEVICE uint8_t e4m3_from_float(float value) { return fp8_from_float<3, 7, 0x7e>(value); }
ASSAY_HOST_DEVICE uint8_t e5m2_from_float(float value) {
  return fp8_from_float<2, 15, 0x7b>(value);
}

ASSAY_HOST_DEVICE float e4m3_to_float(uint8_t bits) {
  const uint32_t sign = static_cast<uint32_t>(bits & 0x80u) << 24, magnitude = bits & 0x7fu;
  if (magnitude == 0x7fu) return float_of(kCanonicalNan);
  return float_of(sign | bits_of(float_of(magnitude << 20) * 0x1p120f));
}
ASSAY_HOST_DEVICE float e5m2_to_float(uint8_t bits) {
  return fp16_to_float(static_cast<uint16_t>(bits << 8));
}

} // namespace assay::ASSAY_TARGET::arch::detail
