// SPDX-License-Identifier: Apache-2.0
// One block attends 8 * row_tiles query rows of one (request, kv head) over a key range.
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

/// Warps are independent until the final merge: warp w takes key tiles w, w + warps, ... of the
/// range through its own cp.async ring, so the loop has no block barrier.
template <class E, int kHeadDim, int kRowTiles>
class DecodeCore {
public:
  static constexpr DecodePolicy kPolicy = decode_policy(kHeadDim, kRowTiles);
  static constexpr int kWarps = kPolicy.warps, kThreads = kWarps * 32;
  static constexpr int kRows = 8 * kRowTiles;
  static constexpr int kTileVectors = kPolicy.tile * kHeadDim / 8;
  using Tile = AttentionTile<E, kHeadDim, kPolicy.tile, kRowTiles>;
  using Loader = WarpTileLoader<E, kHeadDim, kPolicy.tile>;
  using MergeStorage = BlockMergeStorage<kHeadDim, kRows, kWarps>;

  struct Stage {
    arch::Vec4 k[kTileVectors], v[kTileVectors];
  };
  /// The ring is dead once the loops end, so the merge buffers reuse its memory.
  union SharedStorage {
    Stage ring[kWarps][kPolicy.stages];
    MergeStorage merge;
  };

  /// Runs `work` and hands every thread its merged slices: sink(row, dim, RowSlice) with row in
  /// [0, rows in the group), dim a multiple of 8. The slices are not normalised.
  template <class Sink>
  static ASSAY_DEVICE void run(const AttentionParams &params, const PagedKvParams &kv_params,
                               const DecodeWork &work, Sink sink) {
    SharedStorage &shared = arch::shared_storage<SharedStorage>();
    // 1. Each warp attends its tiles.
    Tile tile;
    tile.load_queries([&](int r) -> const E * {
      const int row = work.first_row + r;
      if (row >= params.group_size) return nullptr;
      return static_cast<const E *>(params.q) + work.request * params.q_stride_batch +
             (work.kv_head * params.group_size + row) * params.q_stride_head;
    });
    attend(params.scale_log2, kv_params, work, shared.ring[arch::warp_id()], tile);
    tile.reduce_sums();
    // 2. All rings are drained before the merge buffers overwrite them.
    arch::block_barrier();
    publish_state(tile, shared.merge);
    arch::block_barrier();
    // 3. Each thread merges slices of eight components over the warps.
    constexpr int kSlices = kHeadDim / 8;
    for (int i = arch::thread_idx(); i < kRows * kSlices; i += kThreads) {
      const int row = i / kSlices, dim = i % kSlices * 8;
      if (work.first_row + row >= params.group_size) continue;
      sink(work.first_row + row, dim,
           merge_published<MergeStorage, kWarps>(shared.merge, row, dim, params.scale_log2));
    }
  }

private:
  static ASSAY_DEVICE void attend(float scale, const PagedKvParams &kv_params,
                                  const DecodeWork &work, Stage *ring, Tile &tile) {
    constexpr int kStages = kPolicy.stages, kStride = kWarps * kPolicy.tile;
    const PagedKv<E> kv(kv_params, work.request, work.kv_head);
    Loader loader(kv, work.kv_end);
    const int first = work.kv_begin + static_cast<int>(arch::warp_id()) * kPolicy.tile;
    // K and V of a tile are separate groups, so scores start while V is still in flight. Groups are
    // committed for tiles past the end too: the wait counts below stay constant.
    const auto load = [&](int base, Stage &stage) {
      if (base < work.kv_end) loader.copy_k(stage.k);
      arch::cp_async_commit();
      if (base < work.kv_end) loader.copy_v(stage.v);
      arch::cp_async_commit();
      loader.prefetch_places(base + kStride);
    };
    loader.prefetch_places(first);
    for (int s = 0; s < kStages - 1; ++s)
      load(first + s * kStride, ring[s]);
    int stage = 0;
    for (int base = first; base < work.kv_end; base += kStride) {
      arch::cp_async_wait<2 * (kStages - 1) - 1>();
      // Makes every lane's copies visible to the warp, and frees the stage read last.
      arch::warp_barrier();
      load(base + (kStages - 1) * kStride, ring[(stage + kStages - 1) % kStages]);
      tile.compute_scores(ring[stage].k);
      if (base + kPolicy.tile > work.kv_end) tile.mask_tail(work.kv_end - base);
      tile.update_softmax(scale);
      arch::cp_async_wait<2 * (kStages - 1)>();
      arch::warp_barrier();
      tile.accumulate_values(ring[stage].v);
      stage = (stage + 1) % kStages;
    }
    arch::cp_async_wait<0>();
  }
};

} // namespace assay::ASSAY_TARGET
