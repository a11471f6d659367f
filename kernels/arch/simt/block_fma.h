// SPDX-License-Identifier: Apache-2.0
// The arithmetic of one tensor-core multiply-accumulate.
//
// A block adds `kBlock` products to the accumulator:
//   1. A product is exact. Its exponent is the sum of its factors' exponents; its significand,
//      which lies in [1, 4), is not normalised first.
//   2. e_max is the largest exponent of the addends that are not zero.
//   3. Every addend is truncated towards zero to a multiple of 2^(e_max - kFractionBits).
//   4. The truncated addends are summed exactly.
//   5. The sum is truncated towards zero to fp32.
#pragma once

#include <cstdint>

namespace assay::n_simt::arch {

// The constants of sm_90, measured on an H200 (kernels/arch/PRIMITIVES.md).
struct BlockFmaSpec {
  static constexpr int kBlock = 16;        // products per block; one m16n8k16 is one block
  static constexpr int kFractionBits = 25; // kept below 2^e_max
  // A subnormal factor is not normalised: it has the smallest exponent of its format. A product or
  // an accumulator of zero does not take part in e_max. A sum that is exactly zero is +0. A
  // magnitude of 2^128 or more becomes infinity. A subnormal result is kept.
};

enum class MmaFormat : uint8_t { kBf16, kFp16 };

// c += a * b. a and b are bit patterns of the format. NaN and infinity behave as in IEEE 754; a NaN
// comes out canonical.
struct MmaTile {
  uint16_t a[16][16]; // [m][k]
  uint16_t b[16][8];  // [k][n]
  float c[16][8];     // [m][n]
};
void block_fma_m16n8k16(MmaTile &tile, MmaFormat format);

} // namespace assay::n_simt::arch
