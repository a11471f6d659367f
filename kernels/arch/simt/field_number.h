// SPDX-License-Identifier: Apache-2.0
// The triples behind arch::field: modular arithmetic, undefined parts, access to the table.
#pragma once

#include "kernels/arch/simt/field.h"

#include <cstdint>

namespace assay::n_simt::arch::detail {

using simt::WideNumber;
__extension__ typedef unsigned __int128 uint128;

inline constexpr uint64_t kPrime = (uint64_t{1} << 61) - 1, kOrder = kPrime - 1;
inline constexpr uint64_t kGenerator = 37;
/// What fl(log2 e) and fl(ln 2) stand for. These two are inverse to each other modulo kOrder, as
/// the floats are not.
inline constexpr uint64_t kLog2E = 1000003, kLn2 = 337297703494668667u;

/// Handles that every table starts with. The handle of zero is 0, so that cleared memory reads as
/// zero.
inline constexpr uint32_t kZero = 0, kOne = 1, kNegInfinity = 2, kFirstFree = 3;
/// So many rows take about 2 GB.
inline constexpr uint32_t kMaxNumbers = 1u << 26;

/// An undefined part is kUndefined plus its reason.
inline constexpr uint64_t kUndefined = uint64_t{1} << 63;
enum Reason : uint64_t {
  kNoHandle,   ///< a word that is neither literal nor handle: memory that holds no number
  kInverse,    ///< 1 / 0
  kWeight,     ///< a weight used as an exponent
  kLogarithm,  ///< a score or LSE used as a weight
  kUnit,       ///< logarithms of different bases in a sum or an exponent
  kInfinite,   ///< infinity minus infinity, zero times infinity
  kNotANumber, ///< a NaN or +inf literal
};
constexpr bool defined(uint64_t part) { return part < kUndefined; }
constexpr WideNumber undefined(Reason r) {
  return {kUndefined + r, kUndefined + r, kUndefined + r, 1};
}

inline uint64_t mod_prime(uint128 x) {
  uint64_t y = static_cast<uint64_t>(x & kPrime) + static_cast<uint64_t>(x >> 61);
  while (y >= kPrime) // once, or twice for sums of products
    y = (y & kPrime) + (y >> 61) - (y == kPrime ? kPrime : 0);
  return y;
}
/// 2^61 is 2 modulo 2^61 - 2.
inline uint64_t mod_order(uint128 x) {
  while (x >> 61 != 0)
    x = (x & kPrime) + 2 * (x >> 61);
  const auto y = static_cast<uint64_t>(x);
  return y >= kOrder ? y - kOrder : y;
}
inline uint64_t mul_prime(uint64_t x, uint64_t y) { return mod_prime(uint128{x} * y); }

/// The number behind a handle. A word that is no handle stands for an undefined number.
WideNumber number_of(field x);
/// Enters a number in the table. Zero and one keep the handles that they have.
field enter(const WideNumber &number);
/// x plus a number that has no handle yet.
field add(field x, const WideNumber &number);
/// What a word of 16 bits stands for: a literal, or a number that the running warp has packed.
WideNumber number_of_word(uint16_t word);

} // namespace assay::n_simt::arch::detail
