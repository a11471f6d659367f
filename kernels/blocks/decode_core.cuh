// SPDX-License-Identifier: Apache-2.0
// The persistent decode block. Item after item it attends a range of keys of one (request, kv head)
// with 8 * row_tiles query rows.
#pragma once

#include "kernels/arch/grid_order.cuh"
#include "kernels/blocks/decode_params.h"
#include "kernels/blocks/decode_policy.h"
#include "kernels/common/block_merge.cuh"
#include "kernels/common/query_tokens.cuh"
#include "kernels/common/score_features.cuh"
#include "kernels/plan/split_plan.h"

namespace assay::ASSAY_TARGET {

/// What a block works on: keys [kv_begin, kv_end) of one request and kv head, and the query rows of
/// that kv head from first_row on.
struct DecodeWork {
  int request, kv_head;
  int first_row; // among query tokens * gqa_group_size rows; rows behind those are padding
  int kv_begin, kv_end;
  int seq_len; // length of the request
};

/// Warps are independent until the final merge of an item. Warp w of a team takes the tiles w,
/// w + warps(), ... of the range, through a cp.async ring of its own, so that the loop has no
/// barrier. The copies run ahead of the arithmetic, also from one item into the next: while a block
/// merges one item, the keys of the next are in flight.
///
/// `Items` is a copyable cursor with `bool next(Item &)`; its `work_of(item)` makes a DecodeWork of
/// an Item. Copies and arithmetic have a cursor each. With Items::kWaits the core waits for the
/// grid in front, which may be writing what this one reads, or its outputs. Otherwise only `finish`
/// needs what that grid writes, and waits for it.
///
/// kWithFeatures: q_len > 1, ragged queries, window, softcap, ALiBi, sinks. The plain core has no
/// code for them.
template <class ElementTypes, int kDim, int kRowTiles, int kWarpCount, bool kWithFeatures>
class DecodeCore {
public:
  using Types = ElementTypes;
  using Kv = typename Types::Kv;
  static constexpr int kHeadDim = kDim;
  static constexpr bool kFeatures = kWithFeatures;
  static constexpr DecodePolicy kPolicy =
      decode_policy(kHeadDim, sizeof(Kv), kRowTiles, kWarpCount);
  static constexpr int kWarps = kPolicy.warps, kThreads = kWarps * 32;
  static constexpr int kStages = kPolicy.stages;
  static constexpr int kRows = 8 * kRowTiles;
  /// Components of a row that one thread merges and writes. Blocks of eight warps run where rows
  /// are few and latency counts: in these more threads share a row.
  static constexpr int kSliceDims = kWarps == 8 ? 4 : 8, kSlices = kHeadDim / kSliceDims;
  static constexpr int kTileVectors = kPolicy.tile * kHeadDim / Types::kChunk;
  static constexpr bool kTwoParts =
      has_two_part_weights(sizeof(Kv), kWarpCount, kFeatures) && kRowTiles == 1 &&
      std::is_same_v<typename arch::Arithmetic<typename Types::Mma>::Number, float>;
  using Tile = AttentionTile<Types, kHeadDim, kPolicy.tile, kRowTiles, kTwoParts>;
  using Number = typename Tile::Number;
  using Slice = AttentionState<Number, kSliceDims>;
  using Loader = WarpTileLoader<Kv, kHeadDim, kPolicy.tile, kFeatures>;
  using MergeStorage = BlockMergeStorage<Number, kHeadDim, kRows, kWarps>;
  using Queries = BlockQueries<Types, kHeadDim, kRows>;
  /// Whether a block loads its queries once for all warps. With 4 warps that gains nothing, and
  /// there teams of one or two warps have queries of their own.
  static constexpr bool kSharedQueries = kWarps == 8;
  static_assert(!kSharedQueries || Queries::kVectors <= kThreads);

  struct Stage {
    arch::Vec4 k[kTileVectors], v[kTileVectors];
  };
  struct Nothing {};
  struct SharedStorage {
    Stage ring[kWarps][kStages];
    MergeStorage merge;
    [[no_unique_address]] std::conditional_t<kSharedQueries, typename Queries::Storage, Nothing>
        queries;
    uint32_t is_last; // this block was the last to finish a split of an item
  };
  static_assert(sizeof(SharedStorage) ==
                decode_shared_bytes(kHeadDim, sizeof(Kv), kRowTiles, kWarpCount));

  /// The warps that share items: the whole block, or `count` warps, the first of which is a
  /// multiple of `count`.
  struct BlockTeam {
    static ASSAY_DEVICE constexpr int first_warp() { return 0; }
    static ASSAY_DEVICE constexpr int warps() { return kWarps; }
  };
  struct RowTeam {
    int first, count;
    ASSAY_DEVICE int first_warp() const { return first; }
    ASSAY_DEVICE int warps() const { return count; }
  };

  /// Runs every item of a team. All items have one kv head and one first row, and a RowTeam has at
  /// most one item.
  ///   begin()   is called once the outputs may be written. Without Items::kWaits it is not called
  ///   finish(item, merged, scale)   is called by all threads of the team once the states of an
  ///             item are published
  ///   merged(row, dim, scale, in_parts)   the slice of a row over all warps of the team, not
  ///             normalised. Its maximum times `scale` is a base-2 logit. `in_parts` says that the
  ///             warps computed the states, so that weights may be in two parts
  template <class Team, class Items, class Begin, class Finish>
  static ASSAY_DEVICE void run(const DecodeParams &params, const FeatureParams &features,
                               const PagedKvParams &kv_params, const Team &team, Items items,
                               Begin begin, Finish finish) {
    SharedStorage &shared = arch::shared_storage<SharedStorage>();
    Stage *ring = arch::kept(shared.ring[arch::warp_id()]);
    TileStream<Team, Items> stream(features, kv_params, team, items);
    int stage = 0, free_stage = kStages - 1;
    Tile tile;
    if constexpr (kTwoParts) tile.use_two_parts(two_parts(features));
    Queries queries;
    typename Items::Item item, done;
    bool more = items.next(item);
    const auto locate = [&] { locate_queries(params, features, items.work_of(item), queries); };
    const auto load = [&] { load_queries(params, features, items.work_of(item), tile, queries); };
    if (more) locate();
    // The queries are asked for before the keys, unless the grid in front may be writing them.
    if (more && !params.enable_pdl) load();
    stream.fill(ring);
    if constexpr (Items::kWaits) {
      arch::wait_for_previous_grid();
      arch::start_next_grid();
      begin();
    }
    if (!more) return;
    if (params.enable_pdl) load();
    const int kv_head = items.work_of(item).kv_head;
    Scores scores(params, features, kv_head, items.work_of(item).first_row);
    const float score_scale = scale_of(params, features, kv_head);
    const float scale = scores.scale_after(score_scale);
    while (true) {
      // 1. Each warp attends its tiles.
      const DecodeWork work = items.work_of(item);
      if constexpr (kSharedQueries) {
        queries.store(shared.queries);
        arch::block_barrier(); // serves step 3, too
        tile.read_queries(shared.queries);
      } else {
        tile.prepare_queries();
      }
      scores.begin(work.request, work.seq_len, work.kv_end);
      for (int base = first_tile(team, work); base < work.kv_end; base += stride_of(team)) {
        arch::cp_async_wait<2 * (kStages - 1) - 1>();
        // Shows the copies of every lane to the warp, and frees the stage that was read last.
        arch::warp_barrier();
        stream.copy_next(ring[free_stage]);
        tile.compute_scores(ring[stage].k);
        if constexpr (kFeatures)
          scores.apply(tile, base, score_scale);
        else if (base + kPolicy.tile > work.kv_end)
          tile.mask_tail(work.kv_end - base);
        tile.update_softmax(scale);
        arch::cp_async_wait<2 * (kStages - 1)>();
        arch::warp_barrier();
        tile.accumulate_values(ring[stage].v);
        free_stage = stage;
        stage = stage + 1 == kStages ? 0 : stage + 1;
      }
      tile.reduce_sums();
      // 2. The states of the warps go to shared memory. The queries of the next item arrive
      // meanwhile.
      publish_state(tile, shared.merge);
      done = item;
      more = items.next(item);
      if (more) {
        locate();
        load();
      }
      sync(team);
      finish(
          done,
          [&](int row, int dim, float scale, bool in_parts) {
            return merged_slice(shared.merge, team.first_warp(), team.warps(), row, dim, scale,
                                in_parts && two_parts(features));
          },
          scale);
      if (!more) break;
      // 3. The states of the next item overwrite what other threads may still be reading: they
      // wait. Shared queries need no wait of their own, since all warps had read the old ones
      // before sync().
      if constexpr (!kSharedQueries) arch::block_barrier();
    }
    arch::cp_async_wait<0>();
  }

  /// The rows of the head tile that exist. In a ragged call a tile may lie behind the rows of its
  /// request, and has none.
  static ASSAY_DEVICE int rows_in_tile(const DecodeParams &params, const FeatureParams &features,
                                       const DecodeWork &work) {
    const int left = rows_of(params, features, work) - work.first_row;
    return left < 0 ? 0 : left < kRows ? left : kRows;
  }

  /// Calls f(row in the tile, dim) for the slices of this thread, of rows that exist: `rows` of
  /// them (rows_in_tile), which is asked once for an item. The plain core compares with the
  /// constant of the call and needs no register for it.
  template <class Team, class F>
  static ASSAY_DEVICE void for_each_slice(const Team &team, const FeatureParams &features,
                                          const DecodeWork &work, int rows, F f) {
    const int first = static_cast<int>(arch::thread_idx()) - 32 * team.first_warp();
    for (int i = first; i < kRows * kSlices; i += 32 * team.warps())
      if (kFeatures ? i / kSlices < rows : work.first_row + i / kSlices < features.query_rows)
        f(i / kSlices, i % kSlices * kSliceDims);
  }

  /// Writes slice `dim` of a finished row (normalised o, base-2 LSE), once v_scale and the sink are
  /// applied to it.
  static ASSAY_DEVICE void store_row(const DecodeParams &params, const FeatureParams &features,
                                     const DecodeWork &work, int tile_row, int dim,
                                     Number (&o)[kSliceDims], Number lse2) {
    const RowCoord row = coord_of(params, features, work, tile_row);
    finish_row<Types, kFeatures>(features, work.kv_head, row.head, o, lse2);
    store_final<Query>(params, work.request, row.head, dim, o, lse2,
                       kFeatures ? row.token * features.out_stride_token : 0,
                       kFeatures ? row.token * features.lse_stride_token : 0);
  }

private:
  using Query = typename Types::Query;

  static ASSAY_DEVICE void sync(const BlockTeam &) { arch::block_barrier(); }
  static ASSAY_DEVICE void sync(const RowTeam &team) {
    arch::named_barrier(1 + team.first / team.count, 32 * team.count);
  }

  /// The query rows of the kv head that `work` has: q_len * gqa_group_size, in a ragged call fewer.
  static ASSAY_DEVICE int rows_of(const DecodeParams &params, const FeatureParams &features,
                                  const DecodeWork &work) {
    return query_rows<kFeatures>(features, work.request, params.gqa_group_size);
  }

  static ASSAY_DEVICE bool two_parts(const FeatureParams &features) {
    return kTwoParts && features.query_rows <= kTwoPartRows;
  }

  /// Slice `dim` of a row of the tile over `count` warps. With in_parts its low part is added.
  static ASSAY_DEVICE auto merged_slice(const MergeStorage &storage, int first, int count, int row,
                                        int dim, Number scale, bool in_parts) {
    auto slice = merge_published<kWarps, kSliceDims>(storage, first, count, row, dim, scale);
    if constexpr (kTwoParts)
      if (in_parts)
        add_low_part(slice, merge_published<kWarps, kSliceDims>(storage, first, count,
                                                                row + kTwoPartRows, dim, scale));
    return slice;
  }

  struct NoFeatures {
    ASSAY_DEVICE NoFeatures(const DecodeParams &, const FeatureParams &, int, int) {}
    ASSAY_DEVICE float scale_after(float scale) const { return scale; }
    ASSAY_DEVICE void begin(int, int, int) const {}
  };
  using Scores = std::conditional_t<kFeatures, ScoreFeatures<Tile>, NoFeatures>;

  struct RowCoord {
    int token, head; // query token of the request or, in a ragged call, of all; query head
  };
  static ASSAY_DEVICE RowCoord coord_of(const DecodeParams &params, const FeatureParams &features,
                                        const DecodeWork &work, int tile_row) {
    const int row = work.first_row + tile_row;
    int token = 0;
    if constexpr (kFeatures)
      token = query_tokens(features, work.request).first + row / params.gqa_group_size;
    const int member = kFeatures ? row % params.gqa_group_size : row;
    return {token, work.kv_head * params.gqa_group_size + member};
  }

  /// What makes base-2 logits of scores.
  static ASSAY_DEVICE float scale_of(const DecodeParams &params, const FeatureParams &features,
                                     int kv_head) {
    if constexpr (Types::kFp8) {
      if (features.k_scale != nullptr)
        return params.scale_log2 *
               arch::global_load_readonly(features.k_scale + kv_head * features.k_scale_stride);
    }
    return params.scale_log2;
  }

  /// Where query row r of the tile is, or null for a padding row. With weights in two parts rows 4
  /// to 7 repeat rows 0 to 3.
  static ASSAY_DEVICE const Query *query_row(const DecodeParams &params,
                                             const FeatureParams &features, const DecodeWork &work,
                                             int r) {
    if (two_parts(features)) r %= kTwoPartRows;
    if (work.first_row + r >= rows_of(params, features, work)) return nullptr;
    const RowCoord row = coord_of(params, features, work, r);
    const Query *q = static_cast<const Query *>(params.q) + work.request * params.q_stride_batch +
                     row.head * params.q_stride_head;
    return kFeatures ? q + row.token * features.q_stride_token : q;
  }

  static ASSAY_DEVICE void locate_queries(const DecodeParams &params, const FeatureParams &features,
                                          const DecodeWork &work, Queries &queries) {
    if constexpr (kSharedQueries)
      queries.locate([&](int r) { return query_row(params, features, work, r); });
  }

  static ASSAY_DEVICE void load_queries(const DecodeParams &params, const FeatureParams &features,
                                        const DecodeWork &work, Tile &tile, Queries &queries) {
    if constexpr (kSharedQueries) {
      queries.load();
      tile.clear();
    } else {
      tile.load_queries([&](int r) { return query_row(params, features, work, r); });
    }
  }

  /// The distance between two tiles of a warp, in keys.
  template <class Team>
  static ASSAY_DEVICE int stride_of(const Team &team) {
    return team.warps() * kPolicy.tile;
  }
  template <class Team>
  static ASSAY_DEVICE int first_tile(const Team &team, const DecodeWork &work) {
    const int warp = static_cast<int>(arch::warp_id()) - team.first_warp();
    return work.kv_begin + warp * kPolicy.tile;
  }

  /// The tiles of this warp, of all items in order, as the copies walk them. K and V of a tile are
  /// a group each, so that scores start while V is still in flight. Groups are committed behind the
  /// last tile, too, so that every wait may leave the same number of them pending.
  template <class Team, class Items>
  class TileStream {
  public:
    ASSAY_DEVICE TileStream(const FeatureParams &features, const PagedKvParams &kv_params,
                            const Team &team, const Items &items)
        : features_(features), kv_params_(kv_params), team_(team), items_(items) {
      next_item();
    }

    /// Copies the first kStages - 1 tiles. All look-ups are made first, so that none waits for a
    /// copy. In an early start the grid in front may still be writing the newest tokens, and no
    /// older ones.
    ASSAY_DEVICE void fill(Stage *ring) {
      Ahead ahead[kStages - 1];
      ASSAY_UNROLL
      for (int s = 0; s < kStages - 1; ++s) {
        ahead[s] = {loader_, live_, base_ + kPolicy.tile > first_newest_};
        advance();
      }
      ASSAY_UNROLL
      for (int s = 0; s < kStages - 1; ++s) {
        if (Items::kWaits && ahead[s].live && ahead[s].newest) arch::wait_for_previous_grid();
        copy(ahead[s].loader, ahead[s].live, ring[s]);
      }
    }

    ASSAY_DEVICE void copy_next(Stage &stage) {
      copy(loader_, live_, stage);
      advance();
    }

  private:
    struct Ahead {
      Loader loader;
      bool live, newest;
    };

    ASSAY_DEVICE void copy(const Loader &loader, bool live, Stage &stage) const {
      if (live) loader.template copy<true>(kv_params_, stage.k);
      arch::cp_async_commit();
      if (live) loader.template copy<false>(kv_params_, stage.v);
      arch::cp_async_commit();
    }

    ASSAY_DEVICE void advance() {
      if (!live_) return;
      base_ += stride_of(team_);
      if (base_ < end_)
        loader_.prefetch_coords(kv_params_, base_);
      else
        next_item();
    }

    /// Moves to the next item that has a tile for this warp.
    ASSAY_DEVICE void next_item() {
      typename Items::Item item;
      live_ = false;
      while (!live_ && items_.next(item)) {
        const DecodeWork work = items_.work_of(item);
        base_ = first_tile(team_, work);
        end_ = work.kv_end;
        first_newest_ = work.seq_len - (kFeatures ? features_.q_len : 1);
        live_ = base_ < end_;
        if (live_)
          loader_ = Loader(PagedKv<Kv>(kv_params_, work.request, work.kv_head),
                           kFeatures ? first_seen(features_, work.request, work.seq_len) : 0, end_);
      }
      if (live_) loader_.prefetch_coords(kv_params_, base_);
    }

    const FeatureParams &features_;
    const PagedKvParams &kv_params_;
    const Team team_;
    Items items_;
    Loader loader_;
    int base_ = 0, end_ = 0, first_newest_ = 0;
    bool live_ = false;
  };
};

} // namespace assay::ASSAY_TARGET
