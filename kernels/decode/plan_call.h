// SPDX-License-Identifier: Apache-2.0
// The call of the planner of paged_attention_v2 (assay_plan).
#pragma once

#include "kernels/blocks/paged_shape.h"
#include "kernels/plan/split_plan.h"

namespace assay {

/// How paged_attention_v2 splits a call: its plan's shape, and the warps of its blocks.
struct PagedSplit {
  SplitPlanShape plan;
  int warps = 0;
};

/// Needs no pointers. num_splits is that of the call, still unchecked.
assay_status build_paged_split(const PagedShape &shape, int32_t num_splits, PagedSplit &split);

/// The tiles of a plan, when every request has `tokens` (checked), are counted in 32 bits.
assay_status check_plan_tiles(const SplitPlanShape &shape, int32_t tokens);

struct PlanCall {
  SplitPlanShape shape;
  const int32_t *seq_lens;
  void *plan;
  bool empty;
};

/// assay_plan.
struct Plan {
  using Params = assay_plan_params;
  using Call = PlanCall;
  static assay_status build(const Params *params, Call &call);
  /// assay_plan_size: shapes only.
  static assay_status size(const Params *params, uint64_t *bytes);
};

} // namespace assay
