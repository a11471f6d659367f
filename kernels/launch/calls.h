// SPDX-License-Identifier: Apache-2.0
// From the ABI to validated device parameters: everything a launch needs except the instantiation.
// Building a call checks every argument; nothing here touches a device.
#pragma once

#include "kernels/abi/assay.h"
#include "kernels/cascade/cascade_schedule.h"
#include "kernels/common/params.h"
#include "kernels/plan/split_plan.h"

#include <cstddef>
#include <vector>

namespace assay {

/// Which instantiation a call needs.
struct DecodeVariant {
  int row_tiles;       // of a block
  int tiles_per_group; // row tiles per kv head
  bool hooks;
};

/// Bytes of a cache element. Params is assay_paged_params or assay_plan_params.
template <class Params>
int bytes_of_kv(const Params &p) {
  return p.kv_dtype == p.dtype ? 2 : 1;
}

struct PagedCall {
  AttentionParams attention;
  PagedKvParams kv;
  FeatureParams features;
  DecodeVariant variant;
  int64_t v1_row_tiles, v1_blocks;
  int v1_row_warps; // warps that share a row tile
  bool empty;       // nothing to launch
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

/// One cascade level that has segments.
struct CascadeLevelCall {
  PagedKvParams kv;
  const int32_t *segment_indptr;
  CascadeLevelSchedule schedule;
  int32_t first_state; // states of earlier levels
};

struct CascadeCall {
  CascadeShape shape;
  AttentionParams attention;
  std::vector<CascadeLevelCall> levels;
  int64_t states = 0;                            // of a row: splits of all levels
  int finish = -1;                               // the level whose kernel merges, or none
  int64_t o_accum = 0, lse_accum = 0, bytes = 0; // workspace layout
  float *o_pointer, *lse_pointer;
  bool empty;
};

/// Params is assay_paged_params or assay_plan_params. Hooks other than q_len and window change
/// nothing that a plan depends on.
template <class Params>
int32_t visible_span(const Params &p) {
  return p.window > 0 ? p.window + p.q_len - 1 : 0;
}
DecodeVariant decode_variant(const assay_paged_params &params);
/// Warps of paged_attention_v1 that share a row tile.
int row_warps(const assay_paged_params &params);

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
