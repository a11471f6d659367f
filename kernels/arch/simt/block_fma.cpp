// SPDX-License-Identifier: Apache-2.0
#include "kernels/arch/simt/block_fma.h"

#include <cmath>
#include <cstring>

#include "kernels/arch/convert_bits.cuh"

namespace assay::n_simt::arch {
namespace {

constexpr int kM = 16, kN = 8, kK = 16;
static_assert(BlockFmaSpec::kBlock == kK, "one instruction is one block");

// Vectors of eight columns of the result. The compilers lower them to what vectors the CPU has.
using Ints = int32_t __attribute__((vector_size(kN * 4)));
using Longs = int64_t __attribute__((vector_size(kN * 8)));
using Doubles = double __attribute__((vector_size(kN * 8)));
using Floats = float __attribute__((vector_size(kN * 4)));

constexpr int kNoExponent = -4096; // the exponent of zero: below every sum of two exponents

template <MmaFormat kFormat>
struct Format;
template <>
struct Format<MmaFormat::kBf16> {
  static constexpr int kMantissa = 7, kBias = 127, kSpecial = 255;
  static float to_float(uint16_t bits) { return detail::bf16_to_float(bits); }
};
template <>
struct Format<MmaFormat::kFp16> {
  static constexpr int kMantissa = 10, kBias = 15, kSpecial = 31;
  static float to_float(uint16_t bits) { return detail::fp16_to_float(bits); }
};

// Numbers taken apart: (-1)^negative * significand * 2^(exponent - mantissa bits), where `negative`
// is 0 or -1.
template <int kCount>
struct alignas(32) Factors {
  int32_t significand[kCount], exponent[kCount], negative[kCount];
};

inline Ints load(const int32_t *p) {
  Ints v;
  std::memcpy(&v, p, sizeof v);
  return v;
}

// NaN and infinity decode as zero and set `special`; special_result() then does them again.
template <int kMantissa, int kBias, int kSpecial, int kNone, int kCount>
inline void decode(const uint32_t *bits, int sign_bit, Factors<kCount> &out, int32_t &special) {
  int32_t any_special = 0;
  for (int i = 0; i < kCount; ++i) {
    const int32_t field = static_cast<int32_t>(bits[i] >> kMantissa) & kSpecial;
    const int32_t fraction = static_cast<int32_t>(bits[i]) & ((1 << kMantissa) - 1);
    const int32_t is_special = field == kSpecial, is_normal = field != 0;
    const int32_t significand = (fraction | (is_normal << kMantissa)) & (is_special - 1);
    any_special |= is_special;
    out.significand[i] = significand;
    out.exponent[i] = significand == 0 ? kNone : field + (1 - is_normal) - kBias;
    out.negative[i] = -static_cast<int32_t>(bits[i] >> sign_bit);
  }
  special |= any_special;
}

template <MmaFormat kFormat, int kCount>
inline void decode_factors(const uint16_t *patterns, Factors<kCount> &out, int32_t &special) {
  using F = Format<kFormat>;
  uint32_t bits[kCount];
  for (int i = 0; i < kCount; ++i)
    bits[i] = patterns[i];
  decode<F::kMantissa, F::kBias, F::kSpecial, kNoExponent>(bits, 15, out, special);
}

inline Ints maximum(Ints a, Ints b) { return a > b ? a : b; }
inline Ints clamp_shift(Ints d) {
  const Ints most = d - d + 31; // every addend is below 2^31, so 31 shifts it out
  return d > most ? most : d;
}

// (high + low) * 2^scale, truncated towards zero to fp32.
inline Floats truncate(Ints high, Ints low, Ints scale) {
  // A sum of two int32 is exact in double. The scale of a zero means nothing and is far too small.
  const Ints smallest = scale - scale - 1000;
  const Longs exponent = __builtin_convertvector(maximum(scale, smallest) + 1023, Longs) << 52;
  Doubles value = __builtin_convertvector(high, Doubles) + __builtin_convertvector(low, Doubles);
  value = (Doubles)((Longs)value & ~((int64_t{1} << 29) - 1)); // 24 significant bits
  value *= (Doubles)exponent;
  bool subnormal = false;
  for (int n = 0; n < kN; ++n)
    subnormal |= std::fabs(value[n]) < 0x1p-126;
  if (subnormal)
    for (int n = 0; n < kN; ++n)
      if (std::fabs(value[n]) < 0x1p-126) value[n] = std::trunc(value[n] * 0x1p149) * 0x1p-149;
  return __builtin_convertvector(value, Floats); // exact, or infinite from 2^128 on
}

// The result where a NaN or an infinity takes part; false when none does.
template <MmaFormat kFormat>
bool special_result(const MmaTile &tile, int m, int n, float &result) {
  bool nan = std::isnan(tile.c[m][n]);
  bool infinite[2] = {false, false};
  if (std::isinf(tile.c[m][n])) infinite[std::signbit(tile.c[m][n])] = true;
  for (int k = 0; k < kK; ++k) {
    const float a = Format<kFormat>::to_float(tile.a[m][k]);
    const float b = Format<kFormat>::to_float(tile.b[k][n]);
    if (std::isfinite(a) && std::isfinite(b)) continue;
    if (std::isnan(a) || std::isnan(b) || a == 0.0f || b == 0.0f)
      nan = true;
    else
      infinite[std::signbit(a) != std::signbit(b)] = true;
  }
  if (!nan && !infinite[0] && !infinite[1]) return false;
  nan = nan || (infinite[0] && infinite[1]);
  result = detail::float_of(nan ? detail::kCanonicalNan : infinite[1] ? 0xff800000u : 0x7f800000u);
  return true;
}

template <MmaFormat kFormat>
void run(MmaTile &tile) {
  constexpr int kFraction = BlockFmaSpec::kFractionBits;
  // The significand of a product has 2 * mantissa bits below its unit, and kFraction of them once
  // it is shifted left by kProductShift. 16 such addends stay below 2^31.
  constexpr int kProductShift = kFraction - 2 * Format<kFormat>::kMantissa;
  constexpr int kAccumulatorShift = kFraction - 23;
  static_assert(kProductShift >= 0 && kProductShift + 2 * Format<kFormat>::kMantissa + 2 <= 27);

  int32_t special = 0;
  Factors<kK * kN> b;
  decode_factors<kFormat>(&tile.b[0][0], b, special);
  Factors<kM * kK> a;
  decode_factors<kFormat>(&tile.a[0][0], a, special);
  Factors<kM * kN> c;
  uint32_t c_bits[kM * kN];
  std::memcpy(c_bits, tile.c, sizeof c_bits);
  decode<23, 127, 255, 2 * kNoExponent>(c_bits, 31, c, special);

  Ints b_significand[kK];
  for (int k = 0; k < kK; ++k)
    b_significand[k] = load(&b.significand[k * kN]) << kProductShift;

  Floats result[kM];
  for (int m = 0; m < kM; ++m) {
    const int32_t *a_significand = &a.significand[m * kK], *a_exponent = &a.exponent[m * kK],
                  *a_negative = &a.negative[m * kK];
    const Ints c_exponent = load(&c.exponent[m * kN]), c_negative = load(&c.negative[m * kN]);
    Ints e_max = c_exponent;
    for (int k = 0; k < kK; ++k)
      e_max = maximum(e_max, load(&b.exponent[k * kN]) + a_exponent[k]);
    Ints sum = {};
    for (int k = 0; k < kK; ++k) {
      const Ints distance = clamp_shift(e_max - (load(&b.exponent[k * kN]) + a_exponent[k]));
      const Ints magnitude = (b_significand[k] * a_significand[k]) >> distance;
      const Ints negative = load(&b.negative[k * kN]) ^ a_negative[k];
      sum += (magnitude ^ negative) - negative;
    }
    const Ints c_magnitude =
        (load(&c.significand[m * kN]) << kAccumulatorShift) >> clamp_shift(e_max - c_exponent);
    result[m] = truncate(sum, (c_magnitude ^ c_negative) - c_negative, e_max - kFraction);
  }
  if (special != 0) {
    for (int m = 0; m < kM; ++m)
      for (int n = 0; n < kN; ++n) {
        float value;
        if (special_result<kFormat>(tile, m, n, value)) result[m][n] = value;
      }
  }
  std::memcpy(tile.c, result, sizeof tile.c);
}

} // namespace

void block_fma_m16n8k16(MmaTile &tile, MmaFormat format) {
  format == MmaFormat::kBf16 ? run<MmaFormat::kBf16>(tile) : run<MmaFormat::kFp16>(tile);
}

} // namespace assay::n_simt::arch
