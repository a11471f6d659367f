// SPDX-License-Identifier: Apache-2.0
#include "kernels/arch/mma.cuh"
#include "kernels/arch/simt/field_block.h"
#include "kernels/arch/simt/field_number.h"

#include <bit>

namespace assay::n_simt::arch::detail {
namespace {

using simt::kLanes;
using simt::WarpCall;

/// A (16 x 16) holds words of memory, B (16 x 8) words of memory or packed numbers.
struct Operands {
  uint16_t a[16][16], b[16][8];
};

uint16_t half(uint32_t pair, uint32_t which) { return static_cast<uint16_t>(pair >> 16 * which); }

Operands gather(const WarpCall &call) {
  Operands x;
  for (uint32_t lane = 0; lane < kLanes; ++lane) {
    const auto &args = *static_cast<const MmaArgs *>(call.in[lane]);
    const uint32_t g = lane / 4, t = lane % 4 * 2;
    for (uint32_t h = 0; h < 2; ++h) {
      for (uint32_t r = 0; r < 4; ++r)
        x.a[g + r % 2 * 8][t + r / 2 * 8 + h] = half(args.a[r], h);
      for (uint32_t r = 0; r < 2; ++r)
        x.b[t + r * 8 + h][g] = half(args.b[r], h);
    }
  }
  return x;
}

/// 16 numbers of the operand that may hold packed ones, and what is true of all of them.
struct Column {
  WideNumber k[16];
  WideNumber worst = {0, 0, 1, 1}; ///< the undefined parts, if any
  bool zero = true;
};

Column column_of(const uint16_t (&words)[16]) {
  Column c;
  for (int i = 0; i < 16; ++i) {
    c.k[i] = number_of_word(words[i]);
    c.zero &= c.k[i].a == 0 && c.k[i].b == 0 && c.k[i].m == 1;
    if (!defined(c.k[i].a)) c.worst.a = c.k[i].a;
    if (!defined(c.k[i].b)) c.worst.b = c.k[i].b;
    if (c.k[i].m != 1) c.worst.m = defined(c.k[i].m) ? kUndefined + kUnit : c.k[i].m;
  }
  return c;
}

/// Literals are below 2^15, so a sum of 16 products stays below 2^80 and is reduced once.
WideNumber dot(const uint16_t (&row)[16], const Column &c) {
  WideNumber r = c.worst;
  uint128 a = 0, b = 0;
  for (int i = 0; i < 16; ++i) {
    if (row[i] >= 0x8000) return undefined(kNoHandle);
    if (defined(r.a)) a += uint128{row[i]} * c.k[i].a;
    if (defined(r.b)) b += uint128{row[i]} * c.k[i].b;
  }
  if (defined(r.a)) r.a = mod_prime(a);
  if (defined(r.b)) r.b = mod_order(b);
  return r;
}

bool all_literals(const uint16_t (&row)[16]) {
  uint32_t all = 0;
  for (uint16_t word : row)
    all |= word;
  return all < 0x8000;
}

} // namespace

void apply_field_mma(const WarpCall &call) {
  const Operands x = gather(call);
  bool clean[16];
  for (int row = 0; row < 16; ++row)
    clean[row] = all_literals(x.a[row]);
  for (uint32_t n = 0; n < 8; ++n) {
    uint16_t words[16];
    for (int k = 0; k < 16; ++k)
      words[k] = x.b[k][n];
    const Column column = column_of(words);
    for (uint32_t row = 0; row < 16; ++row) {
      // Padding rows of a query tile are zero and add nothing.
      if (column.zero && clean[row]) continue;
      field &c = static_cast<field *>(call.out[row % 8 * 4 + n / 2])[row / 8 * 2 + n % 2];
      c = add(c, dot(x.a[row], column));
    }
  }
}

void field_block(MmaTile &tile) {
  uint16_t literals[8][16];
  bool clean[8];
  for (int n = 0; n < 8; ++n) {
    for (int k = 0; k < 16; ++k)
      literals[n][k] = tile.b[k][n];
    clean[n] = all_literals(literals[n]);
  }
  for (int m = 0; m < 16; ++m) {
    const Column column = column_of(tile.a[m]);
    for (int n = 0; n < 8; ++n) {
      if (column.zero && clean[n]) continue;
      const field c = field::of_handle(std::bit_cast<uint32_t>(tile.c[m][n]));
      tile.c[m][n] = std::bit_cast<float>(add(c, dot(literals[n], column)).handle());
    }
  }
}

} // namespace assay::n_simt::arch::detail
