// SPDX-License-Identifier: Apache-2.0
// The operations that an attention state needs of its number type.
//
// AttentionState is written against Scalar<R>, never against float. The same source runs with float
// on both targets, with a number of 100 digits in the tests of the algebra, and with the exact
// numbers of kernels/arch/simt/field.h. A number type without the vocabulary of kernels/arch
// specialises Scalar.
#pragma once

#include "kernels/arch/math.cuh"

namespace assay::ASSAY_TARGET {

/// For float, whose approximations kernels/arch/math.cuh states, and for number types that have the
/// same functions.
template <class R>
struct Scalar {
  static ASSAY_DEVICE R zero() { return R(0.0f); }
  static ASSAY_DEVICE R one() { return R(1.0f); }
  static ASSAY_DEVICE R neg_infinity() { return R(arch::neg_infinity()); }
  static ASSAY_DEVICE bool is_neg_infinity(R x) { return arch::is_neg_infinity(x); }
  static ASSAY_DEVICE R exp2(R x) { return arch::exp2_approx(x); }
  static ASSAY_DEVICE R log2(R x) { return arch::log2_approx(x); }
  static ASSAY_DEVICE R reciprocal(R x) { return arch::rcp_approx(x); }
  /// NaN loses. A NaN score still shows, through its weight, in the mass and in the output.
  static ASSAY_DEVICE R max(R a, R b) { return arch::max_num(a, b); }
  /// a * b + c with one rounding.
  static ASSAY_DEVICE R fma(R a, R b, R c) { return arch::fma_rn(a, b, c); }
};

} // namespace assay::ASSAY_TARGET
