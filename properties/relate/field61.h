// SPDX-License-Identifier: Apache-2.0
// The arithmetic of ASSAY_FIELD61 for the reference of algebra_exact, written a second time on
// purpose: nothing here is shared with kernels/arch/simt.
#pragma once

#include <cstdint>
#include <string>

namespace assay::field61 {

__extension__ typedef unsigned __int128 Wide;

inline constexpr uint64_t kPrime = 2305843009213693951u; ///< 2^61 - 1
inline constexpr uint64_t kOrder = kPrime - 1;           ///< of the multiplicative group
inline constexpr uint64_t kGenerator = 37;
/// What fl(log2 e) and fl(ln 2) stand for.
inline constexpr uint64_t kLog2E = 1000003, kLn2 = 337297703494668667u;
static_assert(Wide{kLog2E} * kLn2 % kOrder == 1);

/// x y modulo p: 2^61 is 1. Factors below 2^61.
inline uint64_t times(uint64_t x, uint64_t y) {
  const Wide product = Wide{x} * y;
  const uint64_t folded = static_cast<uint64_t>(product & kPrime) + uint64_t(product >> 61);
  return folded % kPrime;
}
inline uint64_t power(uint64_t base, uint64_t exponent) {
  uint64_t result = 1;
  for (int bit = 63; bit >= 0; --bit) {
    result = times(result, result);
    if (exponent >> bit & 1) result = times(result, base);
  }
  return result;
}
inline uint64_t inverse(uint64_t x) { return power(x, kPrime - 2); }

/// A part a kernel left without a value, and why (the reasons of kernels/arch/simt/field_number.h).
inline bool defined(uint64_t part) { return part >> 63 == 0; }
inline std::string reason(uint64_t part) {
  static constexpr const char *kReasons[] = {"memory that holds no number",
                                             "1 / 0",
                                             "a weight used as an exponent",
                                             "a score or LSE used as a weight",
                                             "logarithms of different bases",
                                             "inf - inf or 0 * inf",
                                             "a NaN constant"};
  const uint64_t which = part & 0xff;
  return which < 7 ? kReasons[which] : "unknown";
}

} // namespace assay::field61
