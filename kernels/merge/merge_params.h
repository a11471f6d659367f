// SPDX-License-Identifier: Apache-2.0
// Parameters of the merge kernels as the device sees them: plain values that have been checked.
#pragma once

#include "kernels/common/params.h"
#include "kernels/common/state_tensor.h"

#include <cstdint>

namespace assay {

inline constexpr int kMergeThreads = 128; // per block of merge_state
/// States that one group of lanes of merge_state has. Their loads are in flight together.
inline constexpr int kMergeGroupStates = 2;

struct MergeStateParams {
  StateTensor a, b, out; // out may alias a or b; out.lse may be null
  int64_t num_states;    // rows * heads
  int32_t num_heads;     // 1 where the heads of a row follow each other as rows do
  int32_t head_dim;
  int32_t lanes_log2; // a state has 2^lanes_log2 <= 32 lanes
  float scale;        // makes base-2 logits of differences of LSEs: 1 or log2 e
  float unit;         // the inverse of scale: 1 or ln 2

  ASSAY_FIELDS(a, b, out, num_states, num_heads, head_dim, lanes_log2, scale, unit)
};

struct MergeStatesParams {
  StateTensor in;  // rows are states
  StateTensor out; // out.lse may be null
  const int32_t
      *indptr; // [num_rows + 1], or null: row r holds num_states states from r * num_states
  int64_t num_rows;
  int32_t num_states, num_heads, head_dim;
  int32_t lanes_log2; // log2 of a worker's lanes: kernels/merge/merge_policy.h
  int32_t workers;    // that share a (row, head)
  float scale, unit;  // as in MergeStateParams

  ASSAY_FIELDS(in, out, indptr, num_rows, num_states, num_heads, head_dim, lanes_log2, workers,
               scale, unit)
};

} // namespace assay
