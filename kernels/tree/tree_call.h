// SPDX-License-Identifier: Apache-2.0
// The call of tree_attention and of its planner. Nothing here touches a device.
#pragma once

#include "kernels/blocks/sm90_policy.h"
#include "kernels/blocks/split_kv_call.h"
#include "kernels/plan/find_prefix_tree.h"

#include <algorithm>

namespace assay {

/// assay_tree_attention_plan, assay_tree_attention_plan_lengths.
struct TreePlanCall {
  bool empty;
  bool keeps_tree;    // the one that the plan holds
  TreeInput tree;     // shape.batch 0: none is looked for
  SplitPlanShape own; // shape of the unique suffix
  void *plan;         // the SplitPlan, and behind it the tree
};

struct TreeCall {
  SplitKvCall own; // call of the unique suffix, or of all keys without a tree
  TreePlanCall planner;
  PartialParams shared; // partial states of the shared keys
  bool empty;
  bool may_share() const { return planner.tree.shape.batch > 0; }
};

/// Where the plan of a call holds its tree.
TreeOutput tree_output_of(const TreePlanCall &call);

/// The unique suffix as in paged_attention_v2, the shared ones as in the wide cascade kernel.
constexpr assay_arithmetic tree_arithmetic() {
  assay_arithmetic a = paged_arithmetic(8, 65536);
  a.sum_depth = std::max(a.sum_depth, 1 + sm90_tile(128) / 8 + 2);
  a.merge_stages = 2; // the splits of the unique suffix become a state before they meet the others
  return a;
}

/// The planner of tree_attention.
struct TreePlan {
  using Params = assay_paged_params;
  using Call = TreePlanCall;
  static assay_status build(const Params *params, Call &call);
  /// assay_tree_attention_plan_size: shapes only.
  static assay_status size(const Params *params, uint64_t *bytes);
};

/// The planner that keeps the tree.
struct TreeLengthsPlan : TreePlan {
  static assay_status build(const Params *params, Call &call);
};

/// tree_attention in the table of kernels (kernels/api/kernels.def).
struct Tree {
  using Params = assay_paged_params;
  using Call = TreeCall;
  using Planner = TreePlan;
  static constexpr assay_family kFamily = ASSAY_FAMILY_PAGED;
  static constexpr assay_arithmetic kArithmetic = tree_arithmetic();
  static constexpr assay_batch_invariance kBatchInvariance = ASSAY_BATCH_NONE;

  static assay_status build(const Params *params, Call &call);
  /// Looks at shapes only.
  static assay_status workspace_size(const Params *params, uint64_t *bytes);
  static assay_status key_order(const void *params, assay_key_tile *tiles, int64_t capacity,
                                int64_t *first);
};

} // namespace assay
