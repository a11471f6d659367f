// SPDX-License-Identifier: Apache-2.0
// An element format as numbers, and its spacing.
#pragma once

#include <cmath>
#include <cstdint>
#include <cstring>

#include "oracle/exact/host_device.h"

namespace assay::oracle {

struct Format {
  double unit_roundoff;      ///< relative error of one rounding of a normal value
  int mantissa_bits;         ///< stored fraction bits
  int min_exponent;          ///< exponent of the smallest normal value
  double max_finite;         ///< largest finite value
  double overflow_threshold; ///< magnitudes from here on round to infinity
};

/** What rounding is off by where it is not relative: below the smallest normal value. */
ORACLE_HOST_DEVICE inline double least_error(const Format &format) {
  return ldexp(format.unit_roundoff, format.min_exponent);
}

/** Half the spacing of the format at this magnitude: limits the rounding error of any |x| <= it. */
ORACLE_HOST_DEVICE inline double half_ulp(const Format &format, double magnitude) {
  const double capped = fmin(magnitude, format.max_finite);
  int exponent = format.min_exponent;
  if (!(capped < 0x1p-1000)) {
    const int own = ilogb(capped);
    if (own > exponent) exponent = own;
  }
  return ldexp(1.0, exponent - format.mantissa_bits - 1);
}

/** Exponent of the binade of a normal magnitude. */
ORACLE_HOST_DEVICE inline int exponent_of(double magnitude) {
  uint64_t bits;
  memcpy(&bits, &magnitude, sizeof bits);
  return static_cast<int>(bits >> 52 & 0x7FF) - 1023;
}

/** 2^exponent, a normal number. */
ORACLE_HOST_DEVICE inline double power_of_two(int exponent) {
  const uint64_t bits = static_cast<uint64_t>(exponent + 1023) << 52;
  double power;
  memcpy(&power, &bits, sizeof power);
  return power;
}

/** Round to nearest even, with gradual underflow and overflow to infinity. */
ORACLE_HOST_DEVICE inline double round_to(const Format &format, double value) {
  const double magnitude = fabs(value);
  if (!(magnitude < format.overflow_threshold))
    return value != value ? value : copysign(HUGE_VAL, value);
  if (magnitude < 0x1p-1000) return copysign(0.0, value);
  int exponent = exponent_of(magnitude);
  if (exponent < format.min_exponent) exponent = format.min_exponent;
  const double quantum = power_of_two(exponent - format.mantissa_bits);
  return nearbyint(value / quantum) * quantum;
}

} // namespace assay::oracle
