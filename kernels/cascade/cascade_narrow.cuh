// SPDX-License-Identifier: Apache-2.0
// The cascade kernel for segments of few rows, private suffixes above all: teams of warps walk the
// keys of a segment side by side, as in paged_attention_v1. It can finish the call: then it merges
// what the kernels in front left of its rows, and writes O.
#pragma once

#include "kernels/arch/shared_storage.cuh"
#include "kernels/arch/sync.cuh"
#include "kernels/cascade/cascade_merge.cuh"
#include "kernels/cascade/cascade_policy.h"
#include "kernels/common/attention_tile.cuh"
#include "kernels/common/block_merge.cuh"

namespace assay::ASSAY_TARGET {

/// Each warp has its own cp.async ring and takes every team_warps-th tile of the keys; the states
/// of a team meet in shared memory once, at the end, in the place of the rings.
template <class E, int kHeadDim, int kRowTiles>
class NarrowCore {
public:
  static constexpr NarrowPolicy kPolicy = narrow_policy(kHeadDim);
  static constexpr int kWarps = kNarrowWarps, kThreads = kWarps * 32, kRows = 8 * kRowTiles;
  using Element = E;
  /// Of an SM: what shared memory holds.
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

  /// The warps that share a tile of rows.
  struct Team {
    int first, warps;
    ASSAY_DEVICE int rank() const { return static_cast<int>(arch::warp_id()) - first; }
    ASSAY_DEVICE int thread() const { return static_cast<int>(arch::thread_idx()) - 32 * first; }
    ASSAY_DEVICE void meet() const {
      if (warps == 1)
        arch::warp_barrier();
      else
        arch::named_barrier(1 + first / warps, 32 * warps);
    }
  };

  static ASSAY_DEVICE void run(const CascadeParams &params, const CascadeWork &work,
                               const Team &team) {
    SharedStorage &shared = arch::shared_storage<SharedStorage>();
    const Number scale = params.attention.scale_log2;
    Tile tile;
    tile.load_queries([&](int r) -> const E * {
      const int row = work.first_row + r;
      return row < work.num_rows ? work.query<E>(params, row) : nullptr;
    });
    constexpr int kSlices = kHeadDim / 8;
    // Rows mostly are of one request.
    const int first_of_lane = work.first_row + team.thread() / kSlices;
    const int request_of_lane =
        work.request(params.attention, first_of_lane < work.num_rows ? first_of_lane : 0);
    uint32_t covering = 0;
    WarpStorage &storage = shared.warps[arch::warp_id()];
    attend(params, work, scale, team, storage.ring, tile, [&] {
      if (params.finish_level >= 0) covering = covering_levels(params, request_of_lane);
    });
    tile.reduce_sums();
    publish_state(tile, storage.state, 0);
    arch::wait_for_previous_grid();
    arch::start_next_grid();
    team.meet();
    const WarpStorage *states = shared.warps + team.first;
    ASSAY_UNROLL_BY(1)
    for (int i = team.thread(); i < kRows * kSlices; i += 32 * team.warps) {
      const int row = work.first_row + i / kSlices, dim = i % kSlices * 8;
      const bool exists = row < work.num_rows;
      if (!arch::any(exists)) return;
      auto slice = merged(states, team.warps, i / kSlices, dim, scale);
      const Number lse2 = slice.lse2(scale);
      slice.normalize();
      if (params.finish_level >= 0) {
        const int request = work.request(params.attention, exists ? row : 0);
        const bool same = request == request_of_lane;
        finish_cascade_row<E, kHeadDim>(params, exists,
                                        same ? covering : covering_levels(params, request), request,
                                        work.head(params.attention, row), dim,
                                        OwnState<Number>{work.state(params), lse2, slice.o});
      } else if (exists)
        store_partial<kHeadDim>(PartialParams{params.o_accum, params.lse_accum},
                                static_cast<uint64_t>(work.partial_row(params, row)), dim, slice.o,
                                lse2);
    }
  }

private:
  using Loader = WarpTileLoader<E, kHeadDim, kPolicy.tile>;

  /// `meanwhile` is called while the first keys are on their way.
  template <class Meanwhile>
  static ASSAY_DEVICE void attend(const CascadeParams &params, const CascadeWork &work,
                                  Number scale, const Team &team, Stage *ring, Tile &tile,
                                  Meanwhile meanwhile) {
    constexpr int kStages = kPolicy.stages;
    const int stride = team.warps * kPolicy.tile;
    const PagedKvParams &kv_params = params.levels[work.level].kv;
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
      if (ahead < end) loader.prefetch_places(kv_params, ahead);
    };
    int base = ahead;
    if (ahead < end) loader.prefetch_places(kv_params, ahead);
    for (int s = 0; s < kStages - 1; ++s)
      copy_next(ring[s]);
    meanwhile();
    tile.prepare_queries();
    int stage = 0, free_stage = kStages - 1;
    for (; base < end; base += stride) {
      arch::cp_async_wait<2 * (kStages - 1) - 1>();
      // Makes every lane's copies visible to the warp, and frees the stage read last.
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
    arch::warp_barrier(); // the state takes the ring's place
  }

  /// Components dim .. dim + 7 of a row over the states of a team.
  static ASSAY_DEVICE auto merged(const WarpStorage *states, int count, int row, int dim,
                                  Number scale) {
    auto sum = merge_published<1, 8>(states[0].state, 0, 1, row, dim, scale);
    ASSAY_UNROLL_BY(1)
    for (int w = 1; w < count; ++w)
      sum.merge(merge_published<1, 8>(states[w].state, 0, 1, row, dim, scale), scale);
    return sum;
  }
};

/// Grid: per level tile slots * kv heads * splits teams; when it finishes the call,
/// kUncoveredBlocks more for requests that its level leaves out.
template <class Core>
ASSAY_KERNEL((Core::kThreads), (Core::kMinBlocks))
cascade_narrow(const ASSAY_GRID_CONSTANT CascadeParams params) {
  const int warp = static_cast<int>(arch::warp_id()), teams = Core::kWarps / params.team_warps;
  const int index = static_cast<int>(arch::block_idx_x()) * teams + warp / params.team_warps;
  CascadeWork work;
  if (index >= params.num_teams) {
    arch::wait_for_previous_grid();
    const int block =
        static_cast<int>(arch::block_idx_x()) - (params.num_teams + teams - 1) / teams;
    if (block >= 0)
      finish_uncovered_rows<typename Core::Element, Core::kDims>(
          params, block * Core::kThreads + static_cast<int>(arch::thread_idx()),
          kUncoveredBlocks * Core::kThreads);
    return;
  }
  if (locate_cascade_work<Core::kRows, kNarrowSplitTokens>(params, index, work))
    return Core::run(params, work,
                     {warp / params.team_warps * params.team_warps, params.team_warps});
  arch::wait_for_previous_grid();
}

} // namespace assay::ASSAY_TARGET
