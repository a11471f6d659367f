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

/// Checks the num_splits of a call, where it fixes how every row is split.
assay_status check_splits(const PagedShape &shape, int32_t num_splits);

/// Looks at no pointer. num_splits is that of the call, and is checked here.
assay_status build_paged_split(const PagedShape &shape, int32_t num_splits, PagedSplit &split);

/// Checks that 32 bits can count the tiles of a plan in which every request has as many tokens as
/// its row of the page table holds. The sizes of the cache must have been checked.
assay_status check_plan_tiles(const assay_paged_kv &kv, const SplitPlanShape &shape);

/// Checks the buffer that a call names for its plan.
assay_status check_plan_buffer(const assay_paged_params &params, int64_t needed);

/// A checked call: what a split-KV kernel is launched with.
struct SplitKvCall {
  PagedCall paged;
  bool empty;
  PagedSplit split;
  PartialParams partial;
  void *plan;
  bool run_planner; // the caller brought no plan
};

} // namespace assay
