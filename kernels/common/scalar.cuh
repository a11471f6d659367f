// SPDX-License-Identifier: Apache-2.0
// The operations an attention state needs from its number type.
//
// Kernels and AttentionState are written against Scalar<R>, never against float: the same source
// runs with float on both targets, with a 100-digit number in the tests of the algebra, and with
// whatever exact arithmetic a verification mode brings (specialise Scalar for it).
#pragma once

#include "kernels/arch/math.cuh"

namespace assay::ASSAY_TARGET {

/// A number type of kernels/arch: float, whose approximations kernels/arch/math.cuh states, or one
/// with the same vocabulary.
template <class R>
struct Scalar {
  static ASSAY_DEVICE R zero() { return R(0.0f); }
  static ASSAY_DEVICE R one() { return R(1.0f); }
  static ASSAY_DEVICE R neg_infinity() { return R(arch::neg_infinity()); }
  static ASSAY_DEVICE bool is_neg_infinity(R x) { return arch::is_neg_infinity(x); }
  static ASSAY_DEVICE R exp2(R x) { return arch::exp2_approx(x); }
  static ASSAY_DEVICE R log2(R x) { return arch::log2_approx(x); }
  static ASSAY_DEVICE R reciprocal(R x) { return arch::rcp_approx(x); }
  /// NaN loses: a NaN score shows in the mass and in the output, through its weight.
  static ASSAY_DEVICE R max(R a, R b) { return arch::max_num(a, b); }
  /// a * b + c with one rounding.
  static ASSAY_DEVICE R fma(R a, R b, R c) { return arch::fma_rn(a, b, c); }
};

} // namespace assay::ASSAY_TARGET
