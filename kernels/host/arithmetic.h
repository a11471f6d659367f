// SPDX-License-Identifier: Apache-2.0
// The arithmetic that kernels built from kernels/arch declare.
#pragma once

#include "kernels/abi/plugin.h"
#include "kernels/host/tensor_core.h"

namespace assay {

// PTX ISA limits of ex2.approx.ftz (2 ulp), lg2.approx.ftz (2^-22 for results near 0, else
// relative) and rcp.approx.ftz (1 ulp).
inline constexpr double kUlp22 = 0x1p-22, kUlp23 = 0x1p-23;
// bf16 queries meet fp8 keys as fp16, scaled by a power of two to below 2^15: steps of 2^-24 lose
// 2^-25 at most.
inline constexpr double kQueryError = 0x1p-39;
// 1 - 2 / (1 + 2^x): see kernels/common/score_features.cuh.
inline constexpr double kTanhError = 3 * 0x1p-22;

/// The arithmetic of AttentionTile on the executor and on sm_90: `tile` keys in the smallest tile,
/// `deepest` in the largest, `states` warps whose states are merged in a block, rows cut into
/// `max_splits` parts at most. A row sum adds two weights per 16 keys in a lane, then three
/// shuffles join the lanes.
constexpr assay_arithmetic tensor_core_arithmetic(int tile, int deepest, int states,
                                                  int max_splits) {
  return {.mma_block = kHopperCore.block,
          .mma_fraction_bits = kHopperCore.fraction_bits,
          .p_format = ASSAY_FORMAT_CALL,
          .sum_format = ASSAY_FORMAT_FP32,
          .exponential = ASSAY_EXP_BASE2,
          .sum_depth = 2 * (deepest / 16) + 3,
          .q_abs_error = kQueryError,
          .exp2_rel_error = kUlp22,
          .log2_abs_error = kUlp22,
          .rcp_rel_error = kUlp23,
          .tanh_abs_error = kTanhError,
          .tile_tokens = tile,
          .max_parallel_states = states,
          .max_splits = max_splits,
          .merge_stages = max_splits > 0,
          .partial_format = ASSAY_FORMAT_FP32,
          .stored_merges = 0,
          .score_format = ASSAY_FORMAT_FP32,
          .p_scale_log2 = 0,
          .rounded_before_scale = 0,
          .accumulator = ASSAY_ACCUMULATOR_FP32,
          .kv_format = ASSAY_FORMAT_FP32,
          .q_format = ASSAY_FORMAT_FP32,
          .product_format = ASSAY_FORMAT_FP32,
          .qk_sum_format = ASSAY_FORMAT_FP32,
          .output_format = ASSAY_FORMAT_FP32,
          .reserved = {}};
}

/// `a` on a device with these tensor cores.
constexpr assay_arithmetic on_tensor_core(assay_arithmetic a, TensorCore core) {
  if (a.mma_block == 0) return a;
  a.mma_block = core.block;
  a.mma_fraction_bits = core.fraction_bits;
  return a;
}

/// The arithmetic of merges of stored states.
constexpr assay_arithmetic merge_arithmetic() {
  assay_arithmetic a{};
  a.exponential = ASSAY_EXP_BASE2;
  a.exp2_rel_error = a.log2_abs_error = kUlp22;
  a.rcp_rel_error = kUlp23;
  a.max_parallel_states = 1;
  return a;
}

} // namespace assay
