// SPDX-License-Identifier: Apache-2.0
#include "oracle/tests/emulated_ops.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <limits>

#include "oracle/exact/dtype.h"

namespace assay::oracle::test {
namespace {

uint64_t mix(uint64_t x) {
  x = (x ^ (x >> 30)) * 0xBF58476D1CE4E5B9ull;
  x = (x ^ (x >> 27)) * 0x94D049BB133111EBull;
  return x ^ (x >> 31);
}

float step(float x, int ulps) {
  if (x == 0.0f || ulps == 0) return x;
  return std::nextafter(x, ulps > 0 ? INFINITY : -INFINITY);
}

// Exponent for the alignment; operands are at least fp32-subnormal.
int exponent(float x, int least) {
  const int field = static_cast<int>((std::bit_cast<uint32_t>(x) >> 23) & 255);
  const int e = field ? field - 127 : std::ilogb(x);
  return std::max(e, least);
}

double power(int e) { return std::bit_cast<double>(static_cast<uint64_t>(e + 1023) << 52); }

float truncate_to_float(double x) {
  const float nearest = static_cast<float>(x);
  if (std::fabs(static_cast<double>(nearest)) <= std::fabs(x)) return nearest;
  return std::nextafter(nearest, 0.0f);
}

} // namespace

namespace {

// The float farthest from `value` in `direction` that a relative error of `limit` allows; with 0
// the nearest.
float within(double value, double limit, int direction) {
  const auto nearest = static_cast<float>(value);
  if (direction == 0) return nearest;
  float result = static_cast<float>(value * (1.0 + direction * limit));
  while (result != nearest && result != 0.0f && std::fabs(result - value) > value * limit)
    result = step(result, -direction);
  return result;
}

} // namespace

float round_bits(float x, int bits) {
  if (x == 0.0f || !std::isfinite(x)) return x;
  const double quantum = std::ldexp(1.0, std::ilogb(x) - bits + 1);
  return static_cast<float>(std::nearbyint(x / quantum) * quantum);
}

int Ops::noise(float x, uint64_t salt) const {
  switch (emulation_.noise) {
  case Noise::kNone:
    return 0;
  case Noise::kUp:
    return 1;
  case Noise::kDown:
  case Noise::kSkewed:
    return -1;
  default:
    return static_cast<int>(mix(std::bit_cast<uint32_t>(x) + salt + emulation_.seed) % 3) - 1;
  }
}

float Ops::exp2(float x) const {
  if (x == 0.0f) return 1.0f;
  double value = std::exp2(static_cast<double>(x));
  if (emulation_.mutant == Mutant::kExp2Coarse) {
    value *= 1.0 + 0x1p-11 * noise(x, 77);
  }
  const int direction = emulation_.noise == Noise::kSkewed ? (x < -1.0f ? 1 : -1) : noise(x, 1);
  float result = within(value, emulation_.exp2_error, direction);
  return result < 0x1p-126f ? 0.0f : result;
}

float Ops::log2(float x) const {
  const double value = std::log2(static_cast<double>(x));
  return static_cast<float>(value +
                            noise(x, 2) * 0.8 * emulation_.log2_error * (1.0 + std::fabs(value)));
}

float Ops::exponential(float x) const {
  if (!emulation_.natural) return exp2(x);
  constexpr float kLog2E = 1.44269504f;
  if (emulation_.seed >> 22 & 1) return exp2(x * kLog2E);
  if (x == 0.0f) return 1.0f;
  const float result = within(std::exp(static_cast<double>(x)), emulation_.exp2_error, noise(x, 1));
  return result < 0x1p-126f ? 0.0f : result;
}

float Ops::logarithm(float x) const {
  return emulation_.natural ? log2(x) * 0.693147181f : log2(x);
}

float Ops::rcp(float x) const {
  const double value = 1.0 / static_cast<double>(x);
  return within(value, emulation_.rcp_error, noise(x, 3));
}

float Ops::round(float x) const {
  return static_cast<float>(round_to(format_of(dtype_), static_cast<double>(x)));
}

float Ops::round(const Format &format, float x) {
  return static_cast<float>(round_to(format, static_cast<double>(x)));
}

float Ops::narrow(const Format &format, float x) const {
  const bool may_cut = std::ldexp(format.unit_roundoff, format.mantissa_bits) == 1.0;
  if (!may_cut || emulation_.seed >> 40 & 1) return round(format, x);
  return std::bit_cast<float>(std::bit_cast<uint32_t>(x) & ~uint32_t{0x1FFF});
}

float Ops::tanh(float x) const {
  const float twice = 2.0f * 1.44269504f * x;
  const float value = 1.0f - 2.0f * (1.0f / (1.0f + std::exp2(twice)));
  return value + static_cast<float>(noise(x, 4)) * 0.5f * static_cast<float>(kTanhError);
}

float Ops::block(float c, const float *a, const float *b, int count, int b_stride,
                 const Format &a_format) const {
  const int least = emulation_.low_subnormals ? format_of(dtype_).min_exponent : -1000;
  const int least_a = emulation_.low_subnormals ? a_format.min_exponent : -1000;
  double products[64];
  bool finite = std::isfinite(c);
  int top = c != 0.0f ? exponent(c, -126) : -1000;
  for (int i = 0; i < count; ++i) {
    const float y = b[static_cast<int64_t>(i) * b_stride];
    products[i] = static_cast<double>(a[i]) * static_cast<double>(y);
    finite &= std::isfinite(products[i]);
    if (products[i] != 0.0) top = std::max(top, exponent(a[i], least_a) + exponent(y, least));
  }
  if (!finite) return NAN; // beyond fp32 nothing is claimed
  if (top == -1000) return 0.0f;
  const double scale = power(emulation_.fraction_bits - top);
  auto sum = static_cast<int64_t>(static_cast<double>(c) * scale);
  for (int i = 0; i < count; ++i)
    sum += static_cast<int64_t>(products[i] * scale);
  return truncate_to_float(static_cast<double>(sum) * power(top - emulation_.fraction_bits));
}

float Ops::accumulate(float c, const float *a, const float *b, int count, int b_stride,
                      const Format *a_format) const {
  if (emulation_.block == 0) {
    for (int i = 0; i < count; ++i)
      c = std::fma(a[i], b[static_cast<int64_t>(i) * b_stride], c);
    return c;
  }
  for (int i = 0; i < count; i += emulation_.block) {
    c = block(c, a + i, b + static_cast<int64_t>(i) * b_stride,
              std::min(emulation_.block, count - i), b_stride,
              a_format ? *a_format : format_of(dtype_));
  }
  return c;
}

} // namespace assay::oracle::test
