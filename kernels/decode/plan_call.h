// SPDX-License-Identifier: Apache-2.0
// The call of the planner of paged_attention_v2, and what planners have in common.
#pragma once

#include "kernels/decode/paged_shape.h"
#include "kernels/plan/split_plan.h"

namespace assay {

/// How paged_attention_v2 splits a call: its plan's shape, and the warps of its blocks.
struct PagedSplit {
  SplitPlanShape plan;
  int warps = 0;
};

/// Needs no pointers. num_splits is that of the call, still unchecked.
assay_status build_paged_split(const PagedShape &shape, int32_t num_splits, PagedSplit &split);

/// The tiles of a plan, when every request has as many tokens as its row of the page table, are
/// counted in 32 bits. Looks at sizes of the cache alone.
assay_status check_plan_tiles(const assay_paged_kv &kv, const SplitPlanShape &shape);

/// The buffer that a call names for its plan.
assay_status check_plan_buffer(const assay_paged_params &params, int64_t needed);

struct PagedV2PlanCall {
  SplitPlanShape shape;
  const int32_t *seq_lens;
  void *plan;
  bool empty;
};

/// assay_paged_attention_v2_plan.
struct PagedV2Plan {
  using Params = assay_paged_params;
  using Call = PagedV2PlanCall;
  static assay_status build(const Params *params, Call &call);
  /// assay_paged_attention_v2_plan_size: shapes only.
  static assay_status size(const Params *params, uint64_t *bytes);
};

} // namespace assay
