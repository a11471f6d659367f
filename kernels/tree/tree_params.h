// SPDX-License-Identifier: Apache-2.0
// Parameters of the kernels of tree_attention as the device sees them: plain values that have been
// checked.
#pragma once

#include "kernels/blocks/decode_params.h"
#include "kernels/plan/prefix_tree.h"

namespace assay {

/// Parameters of the kernel of shared keys.
struct TreeSharedParams {
  AttentionParams attention;
  PagedKvParams kv;
  FeatureParams features;
  FastDivisor query_rows, gqa_group_size; // rows of a (request, kv head), and of one token of it
  const TreeItem *items;
  const int32_t *members;
  int32_t blocks;             // blocks of the grid
  float *o_accum, *lse_accum; // partial states, LSE in base 2; o before v_scale

  ASSAY_FIELDS(attention, kv, features, query_rows.divisor, gqa_group_size.divisor, items, members,
               blocks, o_accum, lse_accum)
};

/// Parameters of the kernel of the unique suffixes, which finishes the call.
struct TreeAttentionParams {
  SplitKvParams own;
  const TreeCoord *coords;
  PartialParams shared; // partial states of the kernel in front

  ASSAY_FIELDS(own, coords, shared)
};

} // namespace assay
