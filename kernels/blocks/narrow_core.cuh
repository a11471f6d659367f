// SPDX-License-Identifier: Apache-2.0
// Attention with few query rows. The warps of a team walk the same keys side by side, as in
// paged_attention_v1.
#pragma once

#include "kernels/arch/shared_storage.cuh"
#include "kernels/arch/sync.cuh"
#include "kernels/blocks/narrow_policy.h"
#include "kernels/common/attention_tile.cuh"
#include "kernels/common/block_merge.cuh"

namespace assay::ASSAY_TARGET {

/// Each warp has a cp.async ring of its own, and takes every team.warps-th tile of the keys. The
/// states of a team are merged once, at the end. They then take the room of the rings in shared
/// memory.
template <class E, int kHeadDim, int kRowTiles>
class NarrowCore {
public:
  static constexpr NarrowPolicy kPolicy = narrow_policy(kHeadDim);
  static constexpr int kWarps = kNarrowWarps, kThreads = kWarps * 32, kRows = 8 * kRowTiles;
  using Element = E;
  /// Blocks of an SM: as many as fit into its shared memory.
  static constexpr int kMinBlocks = kHeadDim == 256 ? 1 : kRowTiles == 1 ? 3 : 2;
  static constexpr int kDims = kHeadDim;
  using Tile = AttentionTile<DecodeTypes<E, E>, kHeadDim, kPolicy.tile, kRowTiles>;
  using Number = typename Tile::Number;

  struct Stage {
    arch::Vec4 k[kPolicy.tile * kHeadDim / 8], v[kPolicy.tile * kHeadDim / 8];
  };
  using State = BlockMergeStorage<Number, kHeadDim, kRows, 1>;
  union WarpStorage {
    Stage ring[kPolicy.stages];
    State state;
  };
  struct SharedStorage {
    WarpStorage warps[kWarps];
  };
  static_assert(sizeof(SharedStorage) == narrow_shared_bytes(kHeadDim));

  /// The warps that share a tile of rows.
  struct Team {
    int first, warps;
    ASSAY_DEVICE int rank() const { return static_cast<int>(arch::warp_id()) - first; }
    ASSAY_DEVICE int thread() const { return static_cast<int>(arch::thread_idx()) - 32 * first; }
    ASSAY_DEVICE void sync() const {
      if (warps == 1)
        arch::warp_barrier();
      else
        arch::named_barrier(1 + first / warps, 32 * warps);
    }
  };

  /// Attends this warp's tiles of the keys of `work`. Sm90Core tells what a Work has. `meanwhile`
  /// is called while the first keys are on their way.
  template <class Params, class Work, class Meanwhile>
  static ASSAY_DEVICE void attend(const Params &params, const Work &work, Number scale,
                                  const Team &team, Stage *ring, Tile &tile, Meanwhile meanwhile) {
    constexpr int kStages = kPolicy.stages;
    const int stride = team.warps * kPolicy.tile;
    const PagedKvParams &kv_params = work.keys(params);
    const int end = work.kv_end;
    Loader loader(PagedKv<E>(kv_params, work.segment, work.kv_head), work.kv_begin, end);
    int ahead = work.kv_begin + team.rank() * kPolicy.tile;
    const auto copy_next = [&](Stage &stage) {
      const bool live = ahead < end;
      if (live) loader.template copy<true>(kv_params, stage.k);
      arch::cp_async_commit();
      if (live) loader.template copy<false>(kv_params, stage.v);
      arch::cp_async_commit();
      ahead += stride;
      if (ahead < end) loader.prefetch_coords(kv_params, ahead);
    };
    int base = ahead;
    if (ahead < end) loader.prefetch_coords(kv_params, ahead);
    for (int s = 0; s < kStages - 1; ++s)
      copy_next(ring[s]);
    meanwhile();
    tile.prepare_queries();
    int stage = 0, free_stage = kStages - 1;
    for (; base < end; base += stride) {
      arch::cp_async_wait<2 * (kStages - 1) - 1>();
      // Shows the copies of every lane to the warp, and frees the stage that was read last.
      arch::warp_barrier();
      copy_next(ring[free_stage]);
      tile.compute_scores(ring[stage].k);
      if (base + kPolicy.tile > end) tile.mask_tail(end - base);
      tile.update_softmax(scale);
      arch::cp_async_wait<2 * (kStages - 1)>();
      arch::warp_barrier();
      tile.accumulate_values(ring[stage].v);
      free_stage = stage;
      stage = stage + 1 == kStages ? 0 : stage + 1;
    }
    arch::cp_async_wait<0>();
    arch::warp_barrier(); // the state takes the room of the ring
  }

  /// Components dim .. dim + 7 of a row over `count` states, which warps of a team have published.
  static ASSAY_DEVICE auto merged(const WarpStorage *states, int count, int row, int dim,
                                  Number scale) {
    auto sum = merge_published<1, 8>(states[0].state, 0, 1, row, dim, scale);
    ASSAY_UNROLL_BY(1)
    for (int w = 1; w < count; ++w)
      sum.merge(merge_published<1, 8>(states[w].state, 0, 1, row, dim, scale), scale);
    return sum;
  }

private:
  using Loader = WarpTileLoader<E, kHeadDim, kPolicy.tile>;
};

} // namespace assay::ASSAY_TARGET
