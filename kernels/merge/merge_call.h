// SPDX-License-Identifier: Apache-2.0
// The calls of merge_state and merge_states: arguments checked and turned into device parameters.
#pragma once

#include "kernels/abi/plugin.h"
#include "kernels/host/arithmetic.h"
#include "kernels/merge/merge_params.h"

namespace assay {

struct MergeStateCall {
  MergeStateParams params;
  assay_dtype dtype;
  int64_t blocks;
  bool empty;
};

struct MergeStatesCall {
  MergeStatesParams params;
  assay_dtype dtype;
  int64_t blocks;
  int threads; // threads of a block
  bool empty;
};

/// merge_state in the table of kernels (kernels/api/kernels.def).
struct MergeState {
  using Params = assay_merge_state_params;
  using Call = MergeStateCall;
  static constexpr assay_family kFamily = ASSAY_FAMILY_MERGE_STATE;
  static constexpr assay_arithmetic kArithmetic = merge_arithmetic();
  static constexpr assay_batch_invariance kBatchInvariance = ASSAY_BATCH_ALWAYS;
  static assay_status build(const Params *params, Call &call);
};

/// merge_states, likewise.
struct MergeStates {
  using Params = assay_merge_states_params;
  using Call = MergeStatesCall;
  static constexpr assay_family kFamily = ASSAY_FAMILY_MERGE_STATES;
  static constexpr assay_arithmetic kArithmetic = merge_arithmetic();
  static constexpr assay_batch_invariance kBatchInvariance = ASSAY_BATCH_ALWAYS;
  static assay_status build(const Params *params, Call &call);
};

} // namespace assay
