// SPDX-License-Identifier: Apache-2.0
#include "oracle/exact/dtype.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstring>
#include <stdexcept>
#include <vector>

#include "kernels/abi/assay_judge.h"

namespace assay::oracle {
namespace {

constexpr Format kFp16{0x1p-11, 10, -14, 65504.0, 65520.0};
constexpr Format kBf16{0x1p-8, 7, -126, 0x1.FEp127, 0x1.FFp127};
// No infinity in e4m3: from the threshold on, rounding leaves the finite range (conversions
// saturate).
constexpr Format kE4m3{0x1p-4, 3, -6, 448.0, 464.0};
constexpr Format kE5m2{0x1p-3, 2, -14, 57344.0, 61440.0};
// Its unit is a whole step: hardware may cut the fraction off.
constexpr Format kTf32{0x1p-10, 10, -126, 0x1.FFCp127, 0x1.FFEp127};
constexpr Format kFp32{0x1p-24, 23, -126, 0x1.FFFFFEp127, 0x1.FFFFFFp127};

float fp16_to_float(uint16_t bits) {
  const int exponent = (bits >> 10) & 31;
  const int fraction = bits & 1023;
  float magnitude;
  if (exponent == 31) {
    magnitude = fraction ? std::nanf("") : INFINITY;
  } else if (exponent == 0) {
    magnitude = static_cast<float>(fraction) * 0x1p-24f;
  } else {
    magnitude =
        static_cast<float>(1024 + fraction) * static_cast<float>(power_of_two(exponent - 25));
  }
  return (bits & 0x8000) ? -magnitude : magnitude;
}

// Sign, 4 exponent bits of bias 7, 3 fraction bits; the largest magnitude is NaN, not infinity.
float e4m3_to_float(uint8_t bits) {
  const int exponent = (bits >> 3) & 15;
  const int fraction = bits & 7;
  float magnitude;
  if ((bits & 0x7F) == 0x7F) {
    magnitude = std::nanf("");
  } else if (exponent == 0) {
    magnitude = static_cast<float>(fraction) * 0x1p-9f;
  } else {
    magnitude = static_cast<float>(8 + fraction) * static_cast<float>(power_of_two(exponent - 10));
  }
  return (bits & 0x80) ? -magnitude : magnitude;
}

// Saturates: callers that want infinity or NaN store the bits.
uint8_t float_to_e4m3(float value) {
  const uint8_t sign = std::signbit(value) ? 0x80 : 0;
  if (std::isnan(value)) return sign | 0x7F;
  const double limited = std::min(std::fabs(static_cast<double>(value)), kE4m3.max_finite);
  const double magnitude = round_to(kE4m3, limited);
  if (magnitude < 0x1p-6) return sign | static_cast<uint8_t>(magnitude * 0x1p9);
  const int exponent = exponent_of(magnitude);
  const auto fraction = static_cast<uint8_t>((magnitude / power_of_two(exponent) - 1.0) * 8.0);
  return static_cast<uint8_t>(sign | ((exponent + 7) << 3) | fraction);
}

uint16_t float_to_fp16(float value) {
  const uint16_t sign = std::signbit(value) ? 0x8000 : 0;
  if (std::isnan(value)) return sign | 0x7E00;
  const double magnitude = round_to(kFp16, std::fabs(static_cast<double>(value)));
  if (std::isinf(magnitude)) return sign | 0x7C00;
  if (magnitude < 0x1p-14) return sign | static_cast<uint16_t>(magnitude * 0x1p24);
  const int exponent = exponent_of(magnitude);
  const auto fraction = static_cast<uint16_t>((magnitude / power_of_two(exponent) - 1.0) * 1024.0);
  return static_cast<uint16_t>(sign | ((exponent + 15) << 10) | fraction);
}

uint16_t float_to_bf16(float value) {
  if (std::isnan(value)) return 0x7FC0;
  const auto rounded = static_cast<float>(round_to(kBf16, value));
  return static_cast<uint16_t>(std::bit_cast<uint32_t>(rounded) >> 16);
}

template <class Word, class Value>
void widen(const void *base, int count, float *out, Value value) {
  for (int i = 0; i < count; ++i) {
    Word word;
    std::memcpy(&word, static_cast<const unsigned char *>(base) + i * sizeof word, sizeof word);
    out[i] = value(word);
  }
}

// The upper half of fp16; what it rounds to has no bits below.
uint8_t float_to_e5m2(float value) {
  const double rounded = std::isfinite(value) ? round_to(kE5m2, value) : value;
  return static_cast<uint8_t>(float_to_fp16(static_cast<float>(rounded)) >> 8);
}

} // namespace

const Format &format_of(assay_dtype dtype) {
  switch (dtype) {
  case ASSAY_FP16:
    return kFp16;
  case ASSAY_BF16:
    return kBf16;
  case ASSAY_FP32:
    return kFp32;
  case ASSAY_E4M3:
    return kE4m3;
  case ASSAY_E5M2:
    return kE5m2;
  default:
    throw std::invalid_argument("oracle: unknown dtype");
  }
}

const Format *rounding_of(assay_format format, assay_dtype operand) {
  switch (format) {
  case ASSAY_FORMAT_FP32:
    return nullptr;
  case ASSAY_FORMAT_CALL:
    return &format_of(operand);
  case ASSAY_FORMAT_FP16:
    return &kFp16;
  case ASSAY_FORMAT_BF16:
    return &kBf16;
  case ASSAY_FORMAT_E4M3:
    return &kE4m3;
  case ASSAY_FORMAT_E5M2:
    return &kE5m2;
  case ASSAY_FORMAT_TF32:
    return &kTf32;
  default:
    throw std::invalid_argument("oracle: unknown format");
  }
}

bool is_fp8(assay_dtype dtype) { return dtype == ASSAY_E4M3 || dtype == ASSAY_E5M2; }

int element_size(assay_dtype dtype) {
  return dtype == ASSAY_FP32 ? 4 : is_fp8(dtype) || dtype == ASSAY_INT8 ? 1 : 2;
}

uint32_t load_bits(assay_dtype dtype, const void *base, int64_t index) {
  const auto *bytes = static_cast<const unsigned char *>(base) + index * element_size(dtype);
  if (dtype == ASSAY_FP32) {
    uint32_t bits;
    std::memcpy(&bits, bytes, sizeof bits);
    return bits;
  }
  if (element_size(dtype) == 1) return *bytes;
  uint16_t bits;
  std::memcpy(&bits, bytes, sizeof bits);
  return bits;
}

float load_element(assay_dtype dtype, const void *base, int64_t index) {
  const uint32_t bits = load_bits(dtype, base, index);
  if (dtype == ASSAY_FP32) return std::bit_cast<float>(bits);
  if (dtype == ASSAY_BF16) return std::bit_cast<float>(bits << 16);
  if (dtype == ASSAY_INT8) return static_cast<float>(static_cast<int8_t>(bits));
  if (dtype == ASSAY_E4M3) return e4m3_to_float(static_cast<uint8_t>(bits));
  if (dtype == ASSAY_E5M2) return fp16_to_float(static_cast<uint16_t>(bits << 8));
  return fp16_to_float(static_cast<uint16_t>(bits));
}

namespace {

std::vector<float> values_of(assay_dtype dtype) {
  std::vector<float> all(size_t{1} << 8 * element_size(dtype));
  for (size_t bits = 0; bits < all.size(); ++bits)
    all[bits] = load_element(dtype, &bits, 0);
  return all;
}

// Values of every pattern of bits: an array read takes a third of the time of load_element. They
// are made when the program starts, as a process forked while another thread makes them would hang.
const std::vector<float> kFp16Values = values_of(ASSAY_FP16);
const std::vector<float> kE4m3Values = values_of(ASSAY_E4M3);
const std::vector<float> kE5m2Values = values_of(ASSAY_E5M2);

} // namespace

void load_elements(assay_dtype dtype, const void *base, int count, float *out) {
  const auto of = [](const std::vector<float> &all) {
    return [values = all.data()](auto bits) { return values[bits]; };
  };
  switch (dtype) {
  case ASSAY_BF16:
    return widen<uint16_t>(base, count, out,
                           [](uint32_t bits) { return std::bit_cast<float>(bits << 16); });
  case ASSAY_FP16:
    return widen<uint16_t>(base, count, out, of(kFp16Values));
  case ASSAY_E4M3:
    return widen<uint8_t>(base, count, out, of(kE4m3Values));
  case ASSAY_E5M2:
    return widen<uint8_t>(base, count, out, of(kE5m2Values));
  default:
    for (int i = 0; i < count; ++i)
      out[i] = load_element(dtype, base, i);
  }
}

void store_element(assay_dtype dtype, void *base, int64_t index, float value) {
  auto *bytes = static_cast<unsigned char *>(base) + index * element_size(dtype);
  if (dtype == ASSAY_FP32) {
    std::memcpy(bytes, &value, sizeof value);
    return;
  }
  if (is_fp8(dtype)) {
    *bytes = dtype == ASSAY_E4M3 ? float_to_e4m3(value) : float_to_e5m2(value);
    return;
  }
  const uint16_t bits = dtype == ASSAY_BF16 ? float_to_bf16(value) : float_to_fp16(value);
  std::memcpy(bytes, &bits, sizeof bits);
}

double smallest_normal(const Format &format) { return power_of_two(format.min_exponent); }

} // namespace assay::oracle
