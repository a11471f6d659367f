// SPDX-License-Identifier: Apache-2.0
// Bit model of a tensor core's score accumulation, for the bit replay (T2).
#pragma once

#include <vector>

#include "oracle/bounds/attention_row.h"

namespace assay::oracle {

/**
 * The facts T2 assumes beyond assay_arithmetic; T2 is only as good as they are. Measured on an
 * NVIDIA H200, 2026-11-20 (mma.sync m16n8k16, bf16 and fp16): 11 million results bit for bit equal
 * to the same model in kernels/arch/tests, special cases included. Other chips are not measured.
 */
struct BlockFmaSpec {
  /// A subnormal operand aligns with the exponent of the smallest normal value (not normalised).
  static constexpr bool kSubnormalsKeepMinExponent = true;
  /// The largest exponent is taken over e_a + e_b of the products before normalising them, and over
  /// the accumulator's exponent; zero addends do not take part.
  static constexpr bool kProductsUnnormalised = true;
  /// Dimensions are consumed in ascending order, mma_block of them at a time, from a zero
  /// accumulator.
  static constexpr bool kAscendingDimensions = true;
  /// The blocks that were measured.
  static constexpr int kBlock = 16, kFractionBits = 25;
};

/** Whether a declaration is that of the device that was measured; one without blocks is as well. Our
    kernels declare other blocks on other devices. */
constexpr bool has_measured_blocks(const assay_arithmetic &a) {
  return a.mma_block == 0 || (a.mma_block == BlockFmaSpec::kBlock &&
                              a.mma_fraction_bits == BlockFmaSpec::kFractionBits);
}

/** The kernel's fp32 score of every key, bit for bit under the model. Needs mma_block in 1..64. */
std::vector<double> replay_scores(const RowProblem &problem);

} // namespace assay::oracle
