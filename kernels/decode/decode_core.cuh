// SPDX-License-Identifier: Apache-2.0
// The persistent decode block: attends 8 * row_tiles query rows of one (request, kv head) over a
// key range, item after item.
#pragma once

#include "kernels/common/block_merge.cuh"
#include "kernels/decode/decode_policy.h"

namespace assay::ASSAY_TARGET {

/// What a block works on: keys [kv_begin, kv_end) of one request and kv head for the query heads
/// first_row .. of the GQA group.
struct DecodeWork {
  int request, kv_head;
  int first_row; // within the group; rows past the group are padding
  int kv_begin, kv_end;
};

/// Warps are independent until an item's final merge: warp w takes key tiles w, w + warps, ... of
/// the range through its own cp.async ring, so the loop has no block barrier. The copies run ahead
/// of the arithmetic across item borders: while a block merges one item, the next one's keys are in
/// flight.
///
/// `Items` is a copyable cursor with `bool next(Item &)`, where Item converts to DecodeWork by
/// `work_of(item)` of the cursor. Copies and arithmetic walk a copy each.
template <class E, int kHeadDim, int kRowTiles, int kWarpCount>
class DecodeCore {
public:
  static constexpr DecodePolicy kPolicy = decode_policy(kHeadDim, kRowTiles, kWarpCount);
  static constexpr int kWarps = kPolicy.warps, kThreads = kWarps * 32;
  static constexpr int kStages = kPolicy.stages, kStride = kWarps * kPolicy.tile;
  static constexpr int kRows = 8 * kRowTiles, kSlices = kHeadDim / 8;
  static constexpr int kTileVectors = kPolicy.tile * kHeadDim / 8;
  using Tile = AttentionTile<E, kHeadDim, kPolicy.tile, kRowTiles>;
  using Loader = WarpTileLoader<E, kHeadDim, kPolicy.tile>;
  using MergeStorage = BlockMergeStorage<typename Tile::Number, kHeadDim, kRows, kWarps>;

  struct Stage {
    arch::Vec4 k[kTileVectors], v[kTileVectors];
  };
  struct SharedStorage {
    Stage ring[kWarps][kStages];
    MergeStorage merge;
    uint32_t is_last; // this block finished a split row last
  };

  /// Runs every item. `finish(item, merged)` is called by all threads of the block once an item's
  /// states are published; merged(row, dim) is the un-normalised slice of a row over all warps.
  template <class Items, class Finish>
  static ASSAY_DEVICE void run(const AttentionParams &params, const PagedKvParams &kv_params,
                               Items items, Finish finish) {
    SharedStorage &shared = arch::shared_storage<SharedStorage>();
    Stage *ring = shared.ring[arch::warp_id()];
    TileStream<Items> stream(kv_params, items);
    for (int s = 0; s < kStages - 1; ++s)
      stream.copy_next(ring[s]);
    int stage = 0;
    Tile tile;
    typename Items::Item item, done;
    bool more = items.next(item);
    if (more) load_queries(params, items.work_of(item), tile);
    while (more) {
      // 1. Each warp attends its tiles.
      const DecodeWork work = items.work_of(item);
      for (int base = first_tile(work); base < work.kv_end; base += kStride) {
        arch::cp_async_wait<2 * (kStages - 1) - 1>();
        // Makes every lane's copies visible to the warp, and frees the stage read last.
        arch::warp_barrier();
        stream.copy_next(ring[(stage + kStages - 1) % kStages]);
        tile.compute_scores(ring[stage].k);
        if (base + kPolicy.tile > work.kv_end) tile.mask_tail(work.kv_end - base);
        tile.update_softmax(params.scale_log2);
        arch::cp_async_wait<2 * (kStages - 1)>();
        arch::warp_barrier();
        tile.accumulate_values(ring[stage].v);
        stage = (stage + 1) % kStages;
      }
      tile.reduce_sums();
      // 2. States meet in shared memory; the next item's queries arrive meanwhile.
      publish_state(tile, shared.merge);
      done = item;
      more = items.next(item);
      if (more) load_queries(params, items.work_of(item), tile);
      arch::block_barrier();
      finish(done, [&](int row, int dim) {
        return merge_published<MergeStorage, kWarps>(shared.merge, row, dim, params.scale_log2);
      });
      // 3. The next item's states overwrite what other threads may still be reading.
      arch::block_barrier();
    }
    arch::cp_async_wait<0>();
  }

  /// Calls f(row in the tile, dim) for this thread's slices of the rows that exist.
  template <class F>
  static ASSAY_DEVICE void for_each_slice(const AttentionParams &params, int first_row, F f) {
    for (int i = arch::thread_idx(); i < kRows * kSlices; i += kThreads)
      if (first_row + i / kSlices < params.group_size) f(i / kSlices, i % kSlices * 8);
  }

private:
  static ASSAY_DEVICE void load_queries(const AttentionParams &params, const DecodeWork &work,
                                        Tile &tile) {
    tile.load_queries([&](int r) -> const E * {
      const int row = work.first_row + r;
      if (row >= params.group_size) return nullptr;
      return static_cast<const E *>(params.q) + work.request * params.q_stride_batch +
             (work.kv_head * params.group_size + row) * params.q_stride_head;
    });
  }

  static ASSAY_DEVICE int first_tile(const DecodeWork &work) {
    return work.kv_begin + static_cast<int>(arch::warp_id()) * kPolicy.tile;
  }

  /// This warp's tiles of all items in order, for the copies. K and V of a tile are separate
  /// groups, so scores start while V is still in flight; groups are committed past the last tile
  /// too, which keeps the wait counts constant.
  template <class Items>
  class TileStream {
  public:
    ASSAY_DEVICE TileStream(const PagedKvParams &kv_params, const Items &items)
        : kv_params_(kv_params), items_(items) {
      next_item();
    }

    ASSAY_DEVICE void copy_next(Stage &stage) {
      if (live_) loader_.template copy<true>(kv_params_, stage.k);
      arch::cp_async_commit();
      if (live_) loader_.template copy<false>(kv_params_, stage.v);
      arch::cp_async_commit();
      if (!live_) return;
      base_ += kStride;
      if (base_ < end_)
        loader_.prefetch_places(kv_params_, base_);
      else
        next_item();
    }

  private:
    /// Moves to the next item that has a tile for this warp.
    ASSAY_DEVICE void next_item() {
      typename Items::Item item;
      live_ = false;
      while (!live_ && items_.next(item)) {
        const DecodeWork work = items_.work_of(item);
        base_ = first_tile(work);
        end_ = work.kv_end;
        live_ = base_ < end_;
        if (live_) loader_ = Loader(PagedKv<E>(kv_params_, work.request, work.kv_head), end_);
      }
      if (live_) loader_.prefetch_places(kv_params_, base_);
    }

    const PagedKvParams &kv_params_;
    Items items_;
    Loader loader_;
    int base_ = 0, end_ = 0;
    bool live_ = false;
  };
};

} // namespace assay::ASSAY_TARGET
