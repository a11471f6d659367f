// SPDX-License-Identifier: Apache-2.0
// An independent model of one block of the tensor core. It computes one output at a time, on values
// and not on bit fields (frexp, ldexp and 128-bit integers), and is slow. The fast model and the
// device are compared with it.
#pragma once

#include <cmath>
#include <cstdint>
#include <cstring>
#include <vector>

namespace assay::arch_test {

struct ExactFormat {
  int smallest_exponent; // the smallest of normal numbers
};
inline constexpr ExactFormat kExactBf16{-126};
inline constexpr ExactFormat kExactFp16{-14};

// floor(log2 |x|), but no less than the smallest exponent of the format: the hardware does not
// normalise subnormal numbers.
inline int stored_exponent(double x, int smallest) {
  int e = 0;
  std::frexp(x, &e);
  return e - 1 < smallest ? smallest : e - 1;
}

inline float truncate_to_float(__int128 sum, int scale) {
  const bool negative = sum < 0;
  unsigned __int128 magnitude = static_cast<unsigned __int128>(negative ? -sum : sum);
  if (magnitude == 0) return 0.0f;
  int bits = 0;
  while (magnitude >> bits)
    ++bits;
  int drop = bits - 24; // keep 24 bits, fewer below the smallest normal
  if (scale + drop < -149) drop = -149 - scale;
  if (drop > 0) {
    magnitude = drop < 128 ? magnitude >> drop : 0;
    scale += drop;
  }
  const long double value = std::ldexp(static_cast<long double>(magnitude), scale);
  if (value >= 0x1p128L) return negative ? -INFINITY : INFINITY;
  return static_cast<float>(negative ? -value : value);
}

// c + sum a[k] * b[k] for finite values of the format.
inline float exact_block(float c, const std::vector<double> &a, const std::vector<double> &b,
                         ExactFormat format, int fraction_bits) {
  bool any = false;
  int e_max = 0;
  const auto consider = [&](int e) {
    e_max = any ? (e > e_max ? e : e_max) : e;
    any = true;
  };
  if (c != 0) consider(stored_exponent(c, -126));
  for (size_t k = 0; k < a.size(); ++k)
    if (a[k] != 0 && b[k] != 0)
      consider(stored_exponent(a[k], format.smallest_exponent) +
               stored_exponent(b[k], format.smallest_exponent));
  if (!any) return 0.0f;
  const int shift = fraction_bits - e_max;
  // Truncated by the conversion. Below 2^(fraction_bits + 2), and a double scales it exactly.
  const auto aligned = [&](double x) { return static_cast<int64_t>(std::ldexp(x, shift)); };
  __int128 sum = aligned(c);
  for (size_t k = 0; k < a.size(); ++k)
    sum += aligned(a[k] * b[k]); // exact: 22 bits at most
  return truncate_to_float(sum, -shift);
}

} // namespace assay::arch_test
