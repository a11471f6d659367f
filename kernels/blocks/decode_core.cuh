// SPDX-License-Identifier: Apache-2.0
// The persistent decode block: attends 8 * row_tiles query rows of one (request, kv head) over a
// key range, item after item.
#pragma once

#include "kernels/arch/grid_order.cuh"
#include "kernels/blocks/decode_params.h"
#include "kernels/blocks/decode_policy.h"
#include "kernels/common/block_merge.cuh"
#include "kernels/common/score_features.cuh"
#include "kernels/plan/split_plan.h"

namespace assay::ASSAY_TARGET {

/// What a block works on: keys [kv_begin, kv_end) of one request and kv head for the query heads
/// first_row .. of the GQA group.
struct DecodeWork {
  int request, kv_head;
  int first_row; // of the q_len * gqa_group_size rows of a kv head; rows past them are padding
  int kv_begin, kv_end;
  int seq_len; // of the request
};

/// Warps are independent until an item's final merge: warp w of a team takes every warps()-th key
/// tile of the range, from its w-th on, through its own cp.async ring, so the loop has no barrier.
/// The copies run ahead of the arithmetic across item borders: while a block merges one item, the
/// next one's keys are in flight.
///
/// `Items` is a copyable cursor with `bool next(Item &)`, where Item converts to DecodeWork by
/// `work_of(item)` of the cursor. Copies and arithmetic walk a copy each. Items::kWaits: the grid
/// in front may be writing what this one reads, and outputs; else only `finish` needs what it
/// writes, and waits for it.
///
/// kWithFeatures: q_len > 1, window, softcap, ALiBi, sinks. The plain core carries nothing of them.
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
  /// Components that a thread merges and writes. Eight warps run where rows are few and latency
  /// counts: there more threads share a row.
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
  /// Where rows are few and latency counts a block loads its queries once. With 4 warps that gains
  /// nothing, and teams of one or two of them have queries of their own.
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
    uint32_t is_last; // this block finished a split row last
  };
  static_assert(sizeof(SharedStorage) ==
                decode_shared_bytes(kHeadDim, sizeof(Kv), kRowTiles, kWarpCount));

  /// The warps that share items: the whole block, or `count` warps of it from a multiple of that.
  struct BlockTeam {
    static ASSAY_DEVICE constexpr int first_warp() { return 0; }
    static ASSAY_DEVICE constexpr int warps() { return kWarps; }
  };
  struct RowTeam {
    int first, count;
    ASSAY_DEVICE int first_warp() const { return first; }
    ASSAY_DEVICE int warps() const { return count; }
  };

  /// Runs every item of a team; all are of one kv head and first row, and a RowTeam has at most
  /// one. `begin()` is called once the outputs may be written, with Items::kWaits. `finish(item,
  /// merged, scale)` is called by all threads of the team once an item's states are published;
  /// merged(row, dim, scale, in_parts) is the un-normalised slice of a row over its warps, its
  /// maximum times `scale` a base-2 logit; in_parts: of states that the warps computed, whose
  /// weights may be in two parts.
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
    // Ahead of the keys in the queue of the memory, unless the grid in front may be writing them.
    if (more && !params.early_start) load();
    stream.fill(ring);
    if constexpr (Items::kWaits) {
      arch::wait_for_previous_grid();
      arch::start_next_grid();
      begin();
    }
    if (!more) return;
    if (params.early_start) load();
    const int kv_head = items.work_of(item).kv_head;
    Scores scores(params, features, kv_head, items.work_of(item).first_row);
    const float score_scale = scale_of(params, features, kv_head);
    const float scale = scores.scale_after(score_scale);
    while (true) {
      // 1. Each warp attends its tiles.
      const DecodeWork work = items.work_of(item);
      if constexpr (kSharedQueries) {
        queries.store(shared.queries);
        arch::block_barrier(); // that of 3., too
        tile.read_queries(shared.queries);
      } else {
        tile.prepare_queries();
      }
      scores.begin(work.seq_len, work.kv_end);
      for (int base = first_tile(team, work); base < work.kv_end; base += stride_of(team)) {
        arch::cp_async_wait<2 * (kStages - 1) - 1>();
        // Makes every lane's copies visible to the warp, and frees the stage read last.
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
      // 2. States meet in shared memory; the next item's queries arrive meanwhile.
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
      // 3. The next item's states overwrite what other threads may still be reading. Its queries
      // need not wait: all have read the last ones before they met.
      if constexpr (!kSharedQueries) arch::block_barrier();
    }
    arch::cp_async_wait<0>();
  }

  /// Calls f(row in the tile, dim) for this thread's slices of the rows that exist.
  template <class Team, class F>
  static ASSAY_DEVICE void for_each_slice(const Team &team, const FeatureParams &features,
                                          int first_row, F f) {
    const int first = static_cast<int>(arch::thread_idx()) - 32 * team.first_warp();
    for (int i = first; i < kRows * kSlices; i += 32 * team.warps())
      if (first_row + i / kSlices < features.query_rows) f(i / kSlices, i % kSlices * kSliceDims);
  }

  /// Scales, joins the sink and writes slice `dim` of a finished row (normalised o, base-2 LSE).
  static ASSAY_DEVICE void store_row(const DecodeParams &params, const FeatureParams &features,
                                     const DecodeWork &work, int tile_row, int dim,
                                     Number (&o)[kSliceDims], Number lse2) {
    const RowCoord row = coord_of(params, work, tile_row);
    finish_row<Types, kFeatures>(features, work.kv_head, row.head, o, lse2);
    store_final<Query>(params, work.request, row.head, dim, o, lse2,
                       kFeatures ? row.token * features.o_stride_token : 0,
                       kFeatures ? row.token * features.lse_stride_token : 0);
  }

private:
  using Query = typename Types::Query;

  static ASSAY_DEVICE void sync(const BlockTeam &) { arch::block_barrier(); }
  static ASSAY_DEVICE void sync(const RowTeam &team) {
    arch::named_barrier(1 + team.first / team.count, 32 * team.count);
  }

  static ASSAY_DEVICE bool two_parts(const FeatureParams &features) {
    return kTwoParts && features.query_rows <= kTwoPartRows;
  }

  /// Slice `dim` of a row of the tile over `count` warps; in_parts: with its low part.
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
    ASSAY_DEVICE void begin(int, int) const {}
  };
  using Scores = std::conditional_t<kFeatures, ScoreFeatures<Tile>, NoFeatures>;

  struct RowCoord {
    int token, head; // query token of the request, query head
  };
  static ASSAY_DEVICE RowCoord coord_of(const DecodeParams &params, const DecodeWork &work,
                                        int tile_row) {
    const int row = work.first_row + tile_row;
    const int token = kFeatures ? row / params.gqa_group_size : 0;
    const int member = kFeatures ? row % params.gqa_group_size : row;
    return {token, work.kv_head * params.gqa_group_size + member};
  }

  /// Score to base-2 logit.
  static ASSAY_DEVICE float scale_of(const DecodeParams &params, const FeatureParams &features,
                                     int kv_head) {
    if constexpr (Types::kFp8) {
      if (features.k_scale != nullptr)
        return params.scale_log2 *
               arch::global_load_readonly(features.k_scale + kv_head * features.k_scale_stride);
    }
    return params.scale_log2;
  }

  /// Where query row r of the tile is, or null for a padding row; with weights in two parts every
  /// row comes twice.
  static ASSAY_DEVICE const Query *query_row(const DecodeParams &params,
                                             const FeatureParams &features, const DecodeWork &work,
                                             int r) {
    if (two_parts(features)) r %= kTwoPartRows;
    if (work.first_row + r >= features.query_rows) return nullptr;
    const RowCoord row = coord_of(params, work, r);
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

  /// Keys between two tiles of a warp, and its first one.
  template <class Team>
  static ASSAY_DEVICE int stride_of(const Team &team) {
    return team.warps() * kPolicy.tile;
  }
  template <class Team>
  static ASSAY_DEVICE int first_tile(const Team &team, const DecodeWork &work) {
    const int warp = static_cast<int>(arch::warp_id()) - team.first_warp();
    return work.kv_begin + warp * kPolicy.tile;
  }

  /// This warp's tiles of all items in order, for the copies. K and V of a tile are separate
  /// groups, so scores start while V is still in flight; groups are committed past the last tile
  /// too, which keeps the wait counts constant.
  template <class Team, class Items>
  class TileStream {
  public:
    ASSAY_DEVICE TileStream(const FeatureParams &features, const PagedKvParams &kv_params,
                            const Team &team, const Items &items)
        : features_(features), kv_params_(kv_params), team_(team), items_(items) {
      next_item();
    }

    /// Copies the first kStages - 1 tiles: all look-ups first, so that none waits for another. In
    /// an early start the grid in front may still be writing the newest tokens, nothing older.
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
                           kFeatures ? first_visible(work.seq_len, features_.span) : 0, end_);
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
