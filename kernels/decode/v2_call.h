// SPDX-License-Identifier: Apache-2.0
// The call of paged_attention_v2.
#pragma once

#include "kernels/decode/plan_call.h"

namespace assay {

/// paged_attention_v2 in the table of kernels (kernels/api/kernels.def).
struct PagedV2 {
  using Params = assay_paged_params;
  using Call = SplitKvCall;
  using Planner = PagedV2Plan;
  static constexpr assay_family kFamily = ASSAY_FAMILY_PAGED;
  static constexpr assay_arithmetic kArithmetic = paged_arithmetic(8, 65536); // or 4 warps
  static constexpr assay_batch_invariance kBatchInvariance = ASSAY_BATCH_FIXED;

  static assay_status build(const Params *params, Call &call);
  /// Looks at shapes only.
  static assay_status workspace_size(const Params *params, uint64_t *bytes);
  static assay_status key_order(const void *params, assay_key_tile *tiles, int64_t capacity,
                                int64_t *first);
};

} // namespace assay
