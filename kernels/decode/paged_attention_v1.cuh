// SPDX-License-Identifier: Apache-2.0
// paged_attention_v1: one block per (request, kv head, row tile), all keys in one pass.
#pragma once

#include "kernels/decode/decode_core.cuh"

namespace assay::ASSAY_TARGET {

struct PagedAttentionV1Params {
  AttentionParams attention;
  PagedKvParams kv;
  int32_t row_tiles_per_group; // ceil(group_size / rows per block)
};

/// Grid: batch * num_kv_heads * row_tiles_per_group blocks, kv heads of one request adjacent (with
/// NHD their rows share DRAM pages). No workspace.
template <class E, int kHeadDim, int kRowTiles>
ASSAY_KERNEL((DecodeCore<E, kHeadDim, kRowTiles>::kThreads),
             (DecodeCore<E, kHeadDim, kRowTiles>::kPolicy.min_blocks))
paged_attention_v1(const ASSAY_GRID_CONSTANT PagedAttentionV1Params params) {
  using Core = DecodeCore<E, kHeadDim, kRowTiles>;
  const AttentionParams &attention = params.attention;
  const int block = arch::block_idx_x();
  const int unit = block / params.row_tiles_per_group;
  DecodeWork work;
  work.request = unit / attention.num_kv_heads;
  work.kv_head = unit % attention.num_kv_heads;
  work.first_row = block % params.row_tiles_per_group * Core::kRows;
  work.kv_begin = 0;
  work.kv_end = arch::global_load_readonly(params.kv.seq_lens + work.request);
  Core::run(attention, params.kv, work, [&](int row, int dim, RowSlice slice) {
    const float lse2 = slice.lse2(attention.scale_log2);
    slice.normalize();
    store_final<E>(attention, work.request, work.kv_head * attention.group_size + row, dim, slice.o,
                   lse2);
  });
}

} // namespace assay::ASSAY_TARGET
