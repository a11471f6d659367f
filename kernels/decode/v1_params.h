// SPDX-License-Identifier: Apache-2.0
// Parameters of paged_attention_v1 as the device sees them: plain values that have been checked.
#pragma once

#include "kernels/blocks/decode_params.h"

namespace assay {

struct PagedAttentionV1Params {
  DecodeParams attention;
  PagedKvParams kv;
  FeatureParams features;
  int32_t tiles_per_kv_head; // head tiles of a (request, kv head)
  int32_t tile_warps;        // warps that share a head tile: 1, 2 or 4 (all of a block)
  uint64_t tile_share;       // v1_tile_share

  ASSAY_FIELDS(attention, attention.enable_pdl, kv, features, tiles_per_kv_head, tile_warps,
               tile_share)
};

} // namespace assay
