// SPDX-License-Identifier: Apache-2.0
// Parameters of the decode kernels as the device sees them: plain values that have been checked.
#pragma once

#include "kernels/common/params.h"
#include "kernels/plan/split_plan.h"

namespace assay {

/// The queries and the final result, and when to start.
struct DecodeParams : AttentionParams {
  /// Programmatic dependent launch (PDL): the kernel in front may still be writing q and the newest
  /// tokens.
  bool enable_pdl;
};

struct SplitKvParams {
  DecodeParams attention;
  PagedKvParams kv;
  FeatureParams features;
  SplitPlan plan;
  PartialParams partial;     // a slot has the query rows of a head tile
  int32_t tiles_per_kv_head; // plan.shape.head_tiles = num_kv_heads * tiles_per_kv_head

  ASSAY_FIELDS(attention, attention.enable_pdl, kv, features, plan.shape.batch,
               plan.shape.head_tiles, plan.shape.splits, plan.shape.workers, plan.shape.tile,
               plan.shape.span, plan.workers, plan.request_items, plan.counters, partial,
               tiles_per_kv_head)
};

} // namespace assay
