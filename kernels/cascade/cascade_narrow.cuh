// SPDX-License-Identifier: Apache-2.0
// The cascade kernel for segments of few rows, above all for unique suffixes. It can finish the
// call: it then merges what the kernels in front left of its rows, and writes O.
#pragma once

#include "kernels/arch/grid_order.cuh"
#include "kernels/blocks/narrow_core.cuh"
#include "kernels/cascade/cascade_merge.cuh"
#include "kernels/cascade/cascade_policy.h"

namespace assay::ASSAY_TARGET {

/// Attends the work of a team. The rows then go to O, where the launch finishes the call, or else
/// to the workspace.
template <class Core>
ASSAY_DEVICE void run_narrow(const CascadeParams &params, const CascadeWork &work,
                             const typename Core::Team &team) {
  using E = typename Core::Element;
  using Number = typename Core::Number;
  auto &shared = arch::shared_storage<typename Core::SharedStorage>();
  const Number scale = params.attention.scale_log2;
  typename Core::Tile tile;
  tile.load_queries([&](int r) -> const E * {
    const int row = work.first_row + r;
    return row < work.num_rows ? work.query<E>(params, row) : nullptr;
  });
  constexpr int kSlices = Core::kDims / 8;
  // The request of this lane's first row. Its other rows mostly are of the same request, whose
  // levels are looked up once.
  const int first_of_lane = work.first_row + team.thread() / kSlices;
  const int request_of_lane =
      work.request(params.attention, first_of_lane < work.num_rows ? first_of_lane : 0);
  uint32_t covering = 0;
  auto &storage = shared.warps[arch::warp_id()];
  Core::attend(params, work, scale, team, storage.ring, tile, [&] {
    if (params.finish_level >= 0) covering = covering_levels(params, request_of_lane);
  });
  tile.reduce_sums();
  publish_state(tile, storage.state, 0);
  arch::wait_for_previous_grid();
  arch::start_next_grid();
  team.sync();
  const auto *states = shared.warps + team.first;
  ASSAY_UNROLL_BY(1)
  for (int i = team.thread(); i < Core::kRows * kSlices; i += 32 * team.warps) {
    const int row = work.first_row + i / kSlices, dim = i % kSlices * 8;
    const bool exists = row < work.num_rows;
    if (!arch::any(exists)) return;
    auto slice = Core::merged(states, team.warps, i / kSlices, dim, scale);
    const Number lse2 = slice.lse2(scale);
    slice.normalize();
    if (params.finish_level >= 0) {
      const int request = work.request(params.attention, exists ? row : 0);
      const bool same = request == request_of_lane;
      finish_cascade_row<E, Core::kDims>(params, exists,
                                         same ? covering : covering_levels(params, request),
                                         request, work.head(params.attention, row), dim,
                                         OwnState<Number>{work.state(params), lse2, slice.o});
    } else if (exists)
      store_partial<Core::kDims>(PartialParams{params.o_accum, params.lse_accum},
                                 static_cast<uint64_t>(work.partial_row(params, row)), dim, slice.o,
                                 lse2);
  }
}

/// Grid: tile slots * kv heads * splits teams per level. A grid that finishes the call has
/// kUncoveredBlocks more, for requests that its level does not cover.
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
    return run_narrow<Core>(params, work,
                            {warp / params.team_warps * params.team_warps, params.team_warps});
  arch::wait_for_previous_grid();
}

} // namespace assay::ASSAY_TARGET
