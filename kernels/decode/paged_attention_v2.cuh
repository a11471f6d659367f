// SPDX-License-Identifier: Apache-2.0
// paged_attention_v2: split-KV over a SplitPlan, and nothing else.
#pragma once

#include "kernels/blocks/split_kv.cuh"

namespace assay::ASSAY_TARGET {

/// Grid: plan.shape.workers * head_tiles blocks. The blocks of a worker are adjacent.
template <class Core>
ASSAY_KERNEL((Core::kThreads), (Core::kPolicy.min_blocks))
paged_attention_v2(const ASSAY_GRID_CONSTANT SplitKvParams params) {
  const PlanItems<Core::kRows> items(params.plan, params.tiles_per_kv_head, arch::block_idx_x());
  run_plan<Core>(params, items, JoinNothing{});
}

} // namespace assay::ASSAY_TARGET
