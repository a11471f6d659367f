// SPDX-License-Identifier: Apache-2.0
#include "kernels/arch/simt/block_fma.h"

#include <cmath>
#include <cstring>

#include "kernels/arch/convert_bits.cuh"

namespace assay::n_simt::arch {
namespace {

constexpr int kM = 16, kN = 8, kK = 16;
static_assert(BlockFmaSpec::kBlock == kK, "one instruction is one block");

// Eight columns of the result at a time; both compilers lower this to whatever vectors there are.
using Ints = int32_t __attribute__((vector_size(kN * 4)));

constexpr int kNoExponent = -4096; // of zero: below every sum of two exponents

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

// One factor: (-1)^negative * significand * 2^(exponent - mantissa bits).
struct Factor {
  int32_t significand;
  int32_t exponent;
  int32_t negative; // 0 or -1
};

// Specials decode as zero and set `special`; they are redone by special_result.
template <MmaFormat kFormat>
inline Factor decode(uint16_t bits, uint32_t &special) {
  using F = Format<kFormat>;
  const int32_t field = (bits >> F::kMantissa) & F::kSpecial;
  const int32_t fraction = bits & ((1 << F::kMantissa) - 1);
  const bool is_special = field == F::kSpecial, is_normal = field != 0;
  special |= is_special;
  Factor factor;
  factor.significand = is_special ? 0 : fraction | (is_normal << F::kMantissa);
  factor.exponent = factor.significand == 0 ? kNoExponent : (is_normal ? field : 1) - F::kBias;
  factor.negative = -(bits >> 15);
  return factor;
}

inline Ints maximum(Ints a, Ints b) { return a > b ? a : b; }
inline Ints clamp_shift(Ints d) {
  const Ints most = d - d + 31; // every addend is below 2^31, so 31 shifts it out
  return d > most ? most : d;
}

// The accumulator in addend units, like a Factor with 23 mantissa bits.
inline Factor decode_accumulator(float value, uint32_t &special) {
  const uint32_t bits = detail::bits_of(value);
  const int32_t field = static_cast<int32_t>((bits >> 23) & 0xff);
  const int32_t fraction = static_cast<int32_t>(bits & 0x7fffff);
  special |= field == 255;
  Factor factor;
  factor.significand = field == 255 ? 0 : fraction | ((field != 0) << 23);
  factor.exponent = factor.significand == 0 ? 2 * kNoExponent : (field ? field : 1) - 127;
  factor.negative = -static_cast<int32_t>(bits >> 31);
  return factor;
}

// sum * 2^scale, truncated towards zero to fp32. |sum| < 2^32.
inline float truncate(int64_t sum, int32_t scale) {
  if (sum == 0) return 0.0f;
  double value = static_cast<double>(sum);
  uint64_t bits;
  std::memcpy(&bits, &value, 8);
  bits &= ~((uint64_t{1} << 29) - 1); // 24 significant bits
  bits += static_cast<uint64_t>(static_cast<int64_t>(scale)) << 52;
  std::memcpy(&value, &bits, 8);
  if (std::fabs(value) < 0x1p-126) value = std::trunc(value * 0x1p149) * 0x1p-149;
  return static_cast<float>(value); // exact, or infinite from 2^128 on
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
  // A product's significand has 2 * mantissa bits below its unit; shifted left by kProductShift it
  // has kFraction of them. 16 such addends stay below 2^31.
  constexpr int kProductShift = kFraction - 2 * Format<kFormat>::kMantissa;
  constexpr int kAccumulatorShift = kFraction - 23;
  static_assert(kProductShift >= 0 && kProductShift + 2 * Format<kFormat>::kMantissa + 2 <= 27);

  uint32_t special = 0;
  Ints b_significand[kK], b_exponent[kK], b_negative[kK];
  for (int k = 0; k < kK; ++k)
    for (int n = 0; n < kN; ++n) {
      const Factor f = decode<kFormat>(tile.b[k][n], special);
      b_significand[k][n] = f.significand << kProductShift;
      b_exponent[k][n] = f.exponent;
      b_negative[k][n] = f.negative;
    }

  const MmaTile before = tile;
  for (int m = 0; m < kM; ++m) {
    Ints c_significand, c_exponent, c_negative;
    for (int n = 0; n < kN; ++n) {
      const Factor f = decode_accumulator(tile.c[m][n], special);
      c_significand[n] = f.significand << kAccumulatorShift;
      c_exponent[n] = f.exponent;
      c_negative[n] = f.negative;
    }
    Factor a[kK];
    for (int k = 0; k < kK; ++k)
      a[k] = decode<kFormat>(tile.a[m][k], special);

    Ints e_max = c_exponent;
    for (int k = 0; k < kK; ++k)
      e_max = maximum(e_max, b_exponent[k] + a[k].exponent);
    Ints sum = {};
    for (int k = 0; k < kK; ++k) {
      const Ints distance = clamp_shift(e_max - (b_exponent[k] + a[k].exponent));
      const Ints magnitude = (b_significand[k] * a[k].significand) >> distance;
      const Ints negative = b_negative[k] ^ a[k].negative;
      sum += (magnitude ^ negative) - negative;
    }
    const Ints c_magnitude = c_significand >> clamp_shift(e_max - c_exponent);
    const Ints c_addend = (c_magnitude ^ c_negative) - c_negative;
    for (int n = 0; n < kN; ++n)
      tile.c[m][n] = truncate(static_cast<int64_t>(sum[n]) + c_addend[n], e_max[n] - kFraction);
  }
  if (special == 0) return;
  for (int m = 0; m < kM; ++m)
    for (int n = 0; n < kN; ++n)
      special_result<kFormat>(before, m, n, tile.c[m][n]);
}

} // namespace

void block_fma_m16n8k16(MmaTile &tile, MmaFormat format) {
  format == MmaFormat::kBf16 ? run<MmaFormat::kBf16>(tile) : run<MmaFormat::kFp16>(tile);
}

} // namespace assay::n_simt::arch
