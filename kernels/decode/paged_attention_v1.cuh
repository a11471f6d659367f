// SPDX-License-Identifier: Apache-2.0
// paged_attention_v1: a block, or a team of its warps, attends all keys of one head tile in one
// pass. A head tile is a request, a kv head, and up to 16 of its query rows.
#pragma once

#include "kernels/blocks/decode_core.cuh"
#include "kernels/decode/v1_params.h"

namespace assay::ASSAY_TARGET {

/// The one item of a team. A team behind the last head tile of the block has none.
class OneItem {
public:
  using Item = DecodeWork;
  static constexpr bool kWaits = true;
  ASSAY_DEVICE OneItem(const DecodeWork &work, bool exists) : work_(work), done_(!exists) {}
  ASSAY_DEVICE bool next(Item &item) {
    item = work_;
    const bool first = !done_;
    done_ = true;
    return first;
  }
  ASSAY_DEVICE const DecodeWork &work_of(const Item &item) const { return item; }

private:
  DecodeWork work_;
  bool done_;
};

/// Grid: v1_blocks() for batch * num_kv_heads * tiles_per_kv_head head tiles of tile_warps warps
/// each. The kv heads of a request are adjacent: in an NHD cache their tokens share DRAM pages.
/// There is no workspace.
template <class Core>
ASSAY_KERNEL((Core::kThreads), (Core::kPolicy.min_blocks))
paged_attention_v1(const ASSAY_GRID_CONSTANT PagedAttentionV1Params params) {
  const DecodeParams &attention = params.attention;
  const int warp = arch::warp_id(), tile_warps = params.tile_warps;
  const typename Core::RowTeam team{warp & -tile_warps, tile_warps};
  const uint64_t begin = arch::block_idx_x() * params.tile_share, end = begin + params.tile_share;
  const int tile = static_cast<int>(begin >> 32) + warp / tile_warps;
  const int head = tile / params.tiles_per_kv_head; // index among all kv heads of all requests
  DecodeWork work{};
  work.request = head / attention.num_kv_heads;
  work.kv_head = head % attention.num_kv_heads;
  work.first_row = tile % params.tiles_per_kv_head * Core::kRows;
  const bool exists = tile < static_cast<int>(end >> 32);
  if (exists) work.seq_len = arch::global_load_readonly(params.kv.seq_lens + work.request);
  work.kv_begin = Core::kFeatures ? first_planned(work.seq_len, params.features.dealt_span) : 0;
  work.kv_end = work.seq_len;
  Core::run(
      attention, params.features, params.kv, team, OneItem(work, exists), [] {},
      [&](const DecodeWork &, auto merged, float scale) {
        const int rows = Core::rows_in_tile(attention, params.features, work);
        Core::for_each_slice(team, params.features, work, rows, [&](int row, int dim) {
          auto slice = merged(row, dim, scale, true);
          const auto lse2 = slice.lse2(scale);
          slice.normalize();
          Core::store_row(attention, params.features, work, row, dim, slice.o, lse2);
        });
      });
}

} // namespace assay::ASSAY_TARGET
