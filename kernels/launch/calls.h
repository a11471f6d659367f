// SPDX-License-Identifier: Apache-2.0
// From the ABI to validated device parameters: everything a launch needs except the instantiation.
// Building a call checks every argument; nothing here touches a device.
#pragma once

#include "kernels/abi/assay.h"
#include "kernels/common/params.h"
#include "kernels/plan/split_plan.h"

#include <cstddef>
#include <vector>

namespace assay {

/// Query rows of one block of the decode kernels: 8 * row_tiles, row_tiles 1 for groups up to 8.
inline int decode_row_tiles(int group_size) { return group_size <= 8 ? 1 : 2; }
inline int row_tiles_per_group(int group_size) {
  const int rows = 8 * decode_row_tiles(group_size);
  return (group_size + rows - 1) / rows;
}

/// Keys per tile of the balanced plan's line: one step of a block of 4 warps x 16 keys.
inline constexpr int kPlanTile = 64;

struct PagedCall {
  AttentionParams attention;
  PagedKvParams kv;
  bool empty; // nothing to launch
};

/// Byte offsets inside the workspace of paged_attention_v2.
struct V2Workspace {
  SplitPlanShape shape;
  int warps = 0; // per block
  int64_t o_accum = 0, lse_accum = 0, plan = 0;
  int64_t bytes = 0;
};

struct PagedV2Call {
  PagedCall paged;
  V2Workspace layout;
  PartialParams partial;
  void *plan;
  bool run_planner; // the caller brought no plan
};

/// Device view of one cascade level without its kernel-side block offset.
struct CascadeLevelCall {
  PagedKvParams kv;
  const int32_t *segment_indptr;
};

struct CascadeCall {
  AttentionParams attention;
  std::vector<CascadeLevelCall> levels;
  int splits;
  int64_t o_accum = 0, lse_accum = 0, bytes = 0; // workspace layout
  float *o_pointer, *lse_pointer;
  bool empty;
};

/// Arguments common to v1 and v2.
assay_status build_paged_call(const assay_paged_params *params, PagedCall &call);
/// Shape and layout only: needs no pointers.
assay_status v2_workspace(const assay_paged_params *params, V2Workspace &layout);
assay_status build_v2_call(const assay_paged_params *params, PagedV2Call &call);
assay_status cascade_layout(const assay_cascade_params *params, CascadeCall &call);
assay_status build_cascade_call(const assay_cascade_params *params, CascadeCall &call);
/// Shape of the plan assay_plan writes.
assay_status plan_shape(const assay_plan_params *params, SplitPlanShape &shape);

} // namespace assay
