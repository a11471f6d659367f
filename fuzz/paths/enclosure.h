// SPDX-License-Identifier: Apache-2.0
// Where a number must lie: what the judges of tiles and merges share. Double precision, whose own
// error the slack holds.
#pragma once

#include <cmath>
#include <cstdio>
#include <string>

namespace assay::fuzz {

struct Enclosure {
  double value = 0, error = 0; // |computed - value| <= error

  /// A NaN is outside, too.
  bool excludes(double x) const { return !(std::fabs(x - value) <= error); }
  std::string outside(const char *what, double got) const {
    char text[160];
    std::snprintf(text, sizeof text, "%s = %a is not within %.6g of %.17g", what, got, error,
                  value);
    return text;
  }
};

inline constexpr double kUnit = 0x1p-24;         // roundoff of fp32
inline constexpr double kSlack = 1.0 + 0x1p-20;  // products of bounds, and double arithmetic
inline constexpr double kFloor = 0x1p-125;       // what an operation may flush
inline constexpr double kMaxMagnitude = 0x1p126; // limit of what fp32 sums may hold

/// What 2^exponent may be computed as: `exponent_error` away in the exponent, `factors` relative,
/// flushed to zero below 2^-126. Exact value and ends.
struct Weight {
  double exact = 0, low = 0, high = 0;

  static Weight of(double exponent, double exponent_error, double factors) {
    if (exponent + exponent_error < -200) return {0, 0, kFloor};
    const double growth = kSlack * std::expm1(exponent_error * 0.69314718055994530942);
    const double exact = std::exp2(exponent);
    const bool may_flush = exponent - exponent_error < -125;
    return {exact, may_flush ? 0 : exact * (1 - factors) / (1 + growth),
            exact * (1 + factors) * (1 + growth) + (may_flush ? kFloor : 0)};
  }
  double error() const { return std::fmax(high - exact, exact - low); }
};

} // namespace assay::fuzz
