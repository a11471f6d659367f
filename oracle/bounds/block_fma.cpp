// SPDX-License-Identifier: Apache-2.0
#include "oracle/bounds/block_fma.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstdint>
#include <stdexcept>

#include "oracle/exact/dtype.h"

namespace assay::oracle {
namespace {

constexpr int kMaxBlock = 64;
// Shifted left by F, a product of two 11-bit significands, and the accumulator's 24 bits, fit 63.
constexpr int kMaxFractionBits = 38;
constexpr int kDigits = 10; // fraction bits of fp16, more than bf16 has
constexpr int kNoExponent = -100000;

/// significand * 2^(exponent - kDigits), the significand below 2^11 in magnitude.
struct Operand {
  int64_t significand;
  int exponent;
};

double power_of_two(int e) { return std::bit_cast<double>(static_cast<uint64_t>(e + 1023) << 52); }

Operand operand(float x, int min_exponent) {
  if (x == 0.0f) return {0, kNoExponent};
  // An fp32 subnormal has field 0 and lies below every format's smallest normal exponent.
  const int field = static_cast<int>(std::bit_cast<uint32_t>(x) >> 23 & 255);
  const int exponent = std::max(field - 127, min_exponent);
  return {static_cast<int64_t>(x * power_of_two(kDigits - exponent)), exponent};
}

/// The fp32 accumulator: significand * 2^(exponent - 23), below 2^24 in magnitude.
struct Accumulator {
  int64_t significand = 0;
  int exponent = kNoExponent;
};

/// x / 2^shift towards zero; 0 <= shift. Without a branch: the innermost step of the replay.
int64_t shift_right(int64_t x, int shift) {
  const int64_t sign = x >> 63;
  const int64_t magnitude = ((x ^ sign) - sign) >> std::min(shift, 63);
  return (magnitude ^ sign) - sign;
}

int bit_length(int64_t x) { return 64 - std::countl_zero(static_cast<uint64_t>(x < 0 ? -x : x)); }

/// Everything in units of 2^(top - F): the addends truncated to it, their sum exact.
Accumulator step(const Accumulator &c, const Operand *a, const Operand *b, int count,
                 int fraction_bits) {
  int top = c.exponent;
  for (int i = 0; i < count; ++i)
    top = std::max(top, a[i].exponent + b[i].exponent);
  if (top < kNoExponent / 2) return {};
  int64_t sum = shift_right(c.significand << fraction_bits, top - c.exponent + 23);
  for (int i = 0; i < count; ++i) {
    const int64_t product = a[i].significand * b[i].significand;
    sum +=
        shift_right(product << fraction_bits, top - (a[i].exponent + b[i].exponent) + 2 * kDigits);
  }
  if (sum == 0) return {};
  // Truncated to fp32: 24 significant bits, fewer below 2^-126.
  const int exponent = std::max(top - fraction_bits + bit_length(sum) - 1, -126);
  const int drop = exponent - 23 - (top - fraction_bits);
  const int64_t significand = drop >= 0 ? shift_right(sum, drop) : sum << -drop;
  if (significand == 0) return {};
  return {significand, exponent};
}

} // namespace

std::vector<double> replay_scores(const RowProblem &problem) {
  const KeySet &keys = *problem.keys;
  const int d = keys.head_dim, block = problem.arithmetic.mma_block;
  const int fraction_bits = problem.arithmetic.mma_fraction_bits;
  if (block < 1 || block > kMaxBlock || fraction_bits < 0 || fraction_bits > kMaxFractionBits) {
    throw std::invalid_argument("oracle: the bit replay needs a block-FMA kernel");
  }
  const int min_exponent = format_of(problem.operand()).min_exponent;
  std::vector<Operand> q, k(static_cast<size_t>(d));
  for (float x : problem.q)
    q.push_back(operand(x, min_exponent));
  std::vector<double> scores(keys.size());
  for (size_t j = 0; j < keys.size(); ++j) {
    for (int i = 0; i < d; ++i)
      k[static_cast<size_t>(i)] = operand(keys.key(j)[i], min_exponent);
    Accumulator sum;
    for (int i = 0; i < d; i += block)
      sum = step(sum, q.data() + i, k.data() + i, std::min(block, d - i), fraction_bits);
    scores[j] = std::ldexp(static_cast<double>(sum.significand), sum.exponent - 23);
  }
  return scores;
}

} // namespace assay::oracle
