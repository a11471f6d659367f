// SPDX-License-Identifier: Apache-2.0
// A timed call of merge_state or merge_states: its outputs, and rows of it for an oracle.
#pragma once

#include "kernels/bench/verify/verify_outputs.h"

#include <memory>

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

/// One row and one head of a call, on the host, as a call of merge_states.
struct SampledMergeRow {
  int row = 0, head = 0; // of the call
  assay_merge_states_params params{};
  std::vector<std::byte> o_in, o;
  std::vector<float> lse_in, lse;
};

using MergeJudge = std::function<void(
    const TimedMerge &, const std::vector<std::unique_ptr<SampledMergeRow>> &, Verification &)>;

/// Checks every element of the outputs; `judge` sees the sampled rows.
Verification verify_merge(const TimedMerge &call, const Memory &memory, const MergeJudge &judge);

} // namespace assay::bench
