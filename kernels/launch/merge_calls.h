// SPDX-License-Identifier: Apache-2.0
// Validated calls of merge_state and merge_states.
#pragma once

#include "kernels/abi/assay.h"
#include "kernels/common/params.h"

#include <cstdint>

namespace assay {

struct MergeStateCall {
  StateTensor a, b, out;
  assay_dtype dtype;
  int64_t num_rows;
  int32_t num_heads, head_dim;
  float scale, unit; // LSE difference -> base-2 logit, and back
  bool empty;
};

struct MergeStatesCall {
  StateTensor in, out;
  const int32_t *indptr;
  assay_dtype dtype;
  int64_t num_rows;
  int32_t num_states, num_heads, head_dim;
  float scale, unit;
  bool empty;
};

assay_status build_merge_state_call(const assay_merge_state_params *params, MergeStateCall &call);
assay_status build_merge_states_call(const assay_merge_states_params *params,
                                     MergeStatesCall &call);

} // namespace assay
