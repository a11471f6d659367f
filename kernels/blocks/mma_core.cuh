// SPDX-License-Identifier: Apache-2.0
// Dense attention in mma tiles. Up to 64 query rows that have the same keys read them once.
#pragma once

#include "kernels/arch/shared_storage.cuh"
#include "kernels/arch/sync.cuh"
#include "kernels/blocks/mma_policy.h"
#include "kernels/common/attention_tile.cuh"
#include "kernels/common/row_output.cuh"

namespace assay::ASSAY_TARGET {

template <class E, int kHeadDim>
class MmaCore {
public:
  static constexpr MmaPolicy kPolicy = mma_policy(kHeadDim);
  using Layout = KvLayout<kHeadDim * sizeof(E)>;
  static constexpr int kWarps = kPolicy.warps, kThreads = kWarps * 32;
  static constexpr int kRows = kPolicy.rows(), kWarpRows = 8 * kPolicy.row_tiles;
  static constexpr int kTileVectors = kPolicy.tile * kHeadDim / 8;
  static constexpr int kWarpTokens = kPolicy.tile / kWarps; // each warp loads its share of a tile
  using Tile = AttentionTile<DecodeTypes<E, E>, kHeadDim, kPolicy.tile, kPolicy.row_tiles>;
  using Loader = WarpTileLoader<E, kHeadDim, kWarpTokens>;

  struct Stage {
    arch::Vec4 k[kTileVectors], v[kTileVectors];
  };
  struct SharedStorage {
    Stage ring[kPolicy.stages];
  };

  /// Sm90Core tells what a Work has.
  template <class Params, class Work>
  static ASSAY_DEVICE void run(const Params &params, const Work &work) {
    const int warp_row = work.first_row + static_cast<int>(arch::warp_id()) * kWarpRows;
    const bool has_rows = warp_row < work.num_rows;
    Tile tile;
    tile.load_queries([&](int r) -> const E * {
      const int row = warp_row + r;
      return row < work.num_rows ? work.template query<E>(params, row) : nullptr;
    });
    attend(params, work, has_rows, tile);
    if (!has_rows) return;
    tile.reduce_sums();
    store(params, work, warp_row, tile);
  }

private:
  /// All warps load every tile together, and each attends it with its own rows.
  template <class Params, class Work>
  static ASSAY_DEVICE void attend(const Params &params, const Work &work, bool has_rows,
                                  Tile &tile) {
    constexpr int kStages = kPolicy.stages;
    SharedStorage &shared = arch::shared_storage<SharedStorage>();
    const PagedKvParams &kv_params = work.keys(params);
    const int begin = work.kv_begin, end = work.kv_end;
    const PagedKv<E> kv(kv_params, work.segment, work.kv_head);
    Loader loader(kv, begin, end);
    const int token = static_cast<int>(arch::warp_id()) * kWarpTokens;
    const auto load = [&](int base, Stage &stage) {
      if (base < end) loader.template copy<true>(kv_params, stage.k + token * Layout::kChunks);
      arch::cp_async_commit();
      if (base < end) loader.template copy<false>(kv_params, stage.v + token * Layout::kChunks);
      arch::cp_async_commit();
      loader.prefetch_coords(kv_params, base + kPolicy.tile + token);
    };
    loader.prefetch_coords(kv_params, begin + token);
    for (int s = 0; s < kStages - 1; ++s)
      load(begin + s * kPolicy.tile, shared.ring[s]);
    int stage = 0;
    for (int base = begin; base < end; base += kPolicy.tile) {
      arch::cp_async_wait<2 * (kStages - 1) - 1>();
      // Other warps read what this one has copied, and all are done with the stage that was read
      // last.
      arch::block_barrier();
      load(base + (kStages - 1) * kPolicy.tile, shared.ring[(stage + kStages - 1) % kStages]);
      if (has_rows) {
        tile.compute_scores(shared.ring[stage].k);
        if (base + kPolicy.tile > end) tile.mask_tail(end - base);
        tile.update_softmax(params.attention.scale_log2);
      }
      arch::cp_async_wait<2 * (kStages - 1)>();
      arch::block_barrier();
      if (has_rows) tile.accumulate_values(shared.ring[stage].v);
      stage = (stage + 1) % kStages;
    }
    arch::cp_async_wait<0>();
  }

  /// Each thread holds every eighth component of its rows, and so its stores have 4 bytes and are
  /// scattered. That costs little: the partials are small beside the K and V of a shared segment.
  template <class Params, class Work>
  static ASSAY_DEVICE void store(const Params &params, const Work &work, int warp_row,
                                 const Tile &tile) {
    const AttentionParams &attention = params.attention;
    ASSAY_UNROLL
    for (int n = 0; n < kPolicy.row_tiles; ++n)
      ASSAY_UNROLL
    for (int j = 0; j < 2; ++j) {
      const int row = warp_row + Tile::row_index(n, j);
      if (row >= work.num_rows) continue;
      const int64_t index = work.partial_row(params, row);
      using Number = typename Tile::Number;
      typename Tile::State state = tile.row(n, j);
      if (arch::lane_id() < 4)
        arch::global_store(words_of<Number>(params.lse_accum) + index,
                           state.lse2(attention.scale_log2));
      state.normalize();
      ASSAY_UNROLL
      for (int i = 0; i < 2 * Tile::kDimTiles; ++i)
        arch::global_store(words_of<Number>(params.o_accum) + index * kHeadDim + Tile::component(i),
                           state.o[i]);
    }
  }
};

} // namespace assay::ASSAY_TARGET
