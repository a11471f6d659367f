// SPDX-License-Identifier: Apache-2.0
// The call of the planner of paged_attention_v2 (assay_paged_attention_v2_plan).
#pragma once

#include "kernels/blocks/split_kv_call.h"

namespace assay {

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
