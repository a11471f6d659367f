// SPDX-License-Identifier: Apache-2.0
// The operations an attention state needs from its number type.
//
// Kernels and AttentionState are written against Scalar<R>, never against float: the same source
// runs with float on both targets, with a 100-digit number in the tests of the algebra, and with
// whatever exact arithmetic a verification mode brings (specialise Scalar for it).
#pragma once

#include "kernels/arch/math.cuh"

namespace assay::ASSAY_TARGET {

template <class R>
struct Scalar;

/// fp32 on the device: accuracy of the approximations is stated in kernels/arch/math.cuh.
template <>
struct Scalar<float> {
  static ASSAY_DEVICE float zero() { return 0.0f; }
  static ASSAY_DEVICE float one() { return 1.0f; }
  static ASSAY_DEVICE float neg_infinity() { return arch::neg_infinity(); }
  static ASSAY_DEVICE bool is_neg_infinity(float x) { return arch::is_neg_infinity(x); }
  static ASSAY_DEVICE float exp2(float x) { return arch::exp2_approx(x); }
  static ASSAY_DEVICE float log2(float x) { return arch::log2_approx(x); }
  static ASSAY_DEVICE float reciprocal(float x) { return arch::rcp_approx(x); }
  /// NaN loses, so a NaN score cannot poison the maximum shared with other keys of the row.
  static ASSAY_DEVICE float max(float a, float b) { return arch::max_num(a, b); }
  /// a * b + c with one rounding.
  static ASSAY_DEVICE float fma(float a, float b, float c) { return arch::fma_rn(a, b, c); }
};

} // namespace assay::ASSAY_TARGET
