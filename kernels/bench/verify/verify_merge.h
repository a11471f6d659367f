// SPDX-License-Identifier: Apache-2.0
// A timed call of merge_state or merge_states: its outputs, and which rows an oracle judges.
#pragma once

#include "kernels/bench/verify/judge.h"

namespace assay::bench {

/// A call of either kernel with as many states in every row, heads dense. Strides in elements.
/// Outputs are as CheckedOutputs says.
struct TimedMerge {
  std::string kernel; // name in the kernel table
  assay_target target;
  assay_dtype dtype; // ASSAY_FP16 or ASSAY_BF16
  assay_lse_base lse_base;
  int32_t rows, states, num_heads, head_dim;
  const void *o_in;    // as the kernel takes it
  const float *lse_in; // as the kernel takes it
  int64_t o_in_stride_row, o_in_stride_state;
  int64_t lse_in_stride_row, lse_in_stride_state;
  void *o;                   // [rows, num_heads, head_dim]
  float *lse;                // [rows, num_heads]
  std::function<void()> run; // returns when the outputs are there
};

/// What the kernels take; the stream is left to the caller.
assay_merge_state_params state_params(const TimedMerge &call);
assay_merge_states_params states_params(const TimedMerge &call);

/// Checks every element of the outputs; `judge` sees the sampled rows. merge_state is called
/// through state_params, others through states_params.
Verification verify_merge(const TimedMerge &call, const Memory &memory, const Judge &judge);

} // namespace assay::bench
