// SPDX-License-Identifier: Apache-2.0
// fp32 arithmetic whose accuracy is part of the contract. Nothing relies on contraction: a * b + c
// in a kernel rounds twice on both targets, and fma_rn rounds once.
//   float exp2_approx(x)  <= 2 ulp; exact at integers; 1 at 0, 0 at -inf, inf at +inf; subnormal
//                         inputs count as 0 and results below 2^-126 are 0
//   float log2_approx(x)  |error| <= 2^-22 (1 + |log2 x|); -inf at 0 and subnormals, NaN below 0
//   float rcp_approx(x)   <= 1 ulp; subnormal inputs count as 0, subnormal results are 0
//   float max_num(a, b)   a NaN loses; max_num(-0, +0) = +0
//   float max_nan(a, b)   a NaN wins
//   float fma_rn(a, b, c) one rounding
//   float neg_infinity(); bool is_neg_infinity(x)
// simt computes exp2 and log2 in double and rounds the result; it rounds rcp correctly. cuda gives
// what the instruction gives. The targets agree through these bounds, not bit for bit.
#pragma once

#include "kernels/arch/convert_bits.cuh"
#include "kernels/arch/target.cuh"

#if ASSAY_IS_CUDA
#include "kernels/arch/cuda/math.cuh"
#else
#include "kernels/arch/simt/math.cuh"
#endif

namespace assay::ASSAY_TARGET::arch {

ASSAY_DEVICE float neg_infinity() { return detail::float_of(0xff800000u); }
ASSAY_DEVICE bool is_neg_infinity(float x) { return detail::bits_of(x) == 0xff800000u; }

} // namespace assay::ASSAY_TARGET::arch
