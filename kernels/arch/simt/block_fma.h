// SPDX-License-Identifier: Apache-2.0
// The arithmetic of one tensor-core multiply-accumulate.
//
// A block is `kBlock` products and the accumulator. Products are exact; a product's exponent is the
// sum of its factors' exponents (its significand, in [1, 4), is not normalised first). Every addend
// is truncated towards zero to a multiple of 2^(e_max - kFractionBits), where e_max is the largest
// exponent among the addends that are not zero; the truncated addends are summed exactly; the sum
// is truncated towards zero to fp32.
#pragma once

#include <cstdint>

namespace assay::n_simt::arch {

// sm_90; measured on an H200, see kernels/arch/README.md.
struct BlockFmaSpec {
  static constexpr int kBlock = 16;        // products per block; one m16n8k16 is one block
  static constexpr int kFractionBits = 25; // kept below 2^e_max
  // Subnormal factors keep the format's smallest exponent (they are not normalised), zero products
  // and a zero accumulator do not take part in e_max, an exact zero sum is +0, magnitudes of 2^128
  // and more become infinite, subnormal results are kept.
};

enum class MmaFormat : uint8_t { kBf16, kFp16 };

// c += a * b; 16-bit patterns of the format. NaN and infinities as in IEEE 754, NaN canonical.
struct MmaTile {
  uint16_t a[16][16]; // [m][k]
  uint16_t b[16][8];  // [k][n]
  float c[16][8];     // [m][n]
};
void block_fma_m16n8k16(MmaTile &tile, MmaFormat format);

} // namespace assay::n_simt::arch
