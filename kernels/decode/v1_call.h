// SPDX-License-Identifier: Apache-2.0
// The call of paged_attention_v1.
#pragma once

#include "kernels/blocks/paged_call.h"
#include "kernels/decode/v1_policy.h"

namespace assay {

struct PagedV1Call {
  PagedCall paged;
  bool empty;
  int64_t head_tiles, blocks;
  int tile_warps; // that share a head tile
};

/// paged_attention_v1 in the table of kernels (kernels/api/kernels.def).
struct PagedV1 {
  using Params = assay_paged_params;
  using Call = PagedV1Call;
  static constexpr assay_family kFamily = ASSAY_FAMILY_PAGED;
  static constexpr assay_arithmetic kArithmetic = paged_arithmetic(kDecodeWarps, 0);
  static constexpr assay_batch_invariance kBatchInvariance = ASSAY_BATCH_ALWAYS;

  static assay_status build(const Params *params, Call &call);
  static assay_status key_order(const void *params, assay_key_tile *tiles, int64_t capacity,
                                int64_t *first);
};

} // namespace assay
