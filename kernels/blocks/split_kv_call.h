// SPDX-License-Identifier: Apache-2.0
// What the calls of the split-KV kernels have in common.
#pragma once

#include "kernels/blocks/paged_call.h"
#include "kernels/plan/split_plan.h"

namespace assay {

/// How a call is split: its plan's shape, and the warps of its blocks.
struct PagedSplit {
  SplitPlanShape plan;
  int warps = 0;
};

/// Needs no pointers. num_splits is that of the call, still unchecked.
assay_status build_paged_split(const PagedShape &shape, int32_t num_splits, PagedSplit &split);

/// The tiles of a plan, when every request has `tokens` (checked), are counted in 32 bits.
assay_status check_plan_tiles(const SplitPlanShape &shape, int32_t tokens);

struct SplitKvCall {
  PagedCall paged;
  bool empty;
  PagedSplit split;
  PartialParams partial;
  void *plan;
  bool run_planner; // the caller brought no plan
};

} // namespace assay
