// SPDX-License-Identifier: Apache-2.0
// An element format as numbers, and its spacing.
#pragma once

#include <cmath>

#include "oracle/exact/host_device.h"

namespace assay::oracle {

struct Format {
  double unit_roundoff;      ///< relative error of one rounding of a normal value
  int mantissa_bits;         ///< stored fraction bits
  int min_exponent;          ///< of the smallest normal value
  double max_finite;         ///< largest finite value
  double overflow_threshold; ///< magnitudes from here on round to infinity
};

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

} // namespace assay::oracle
