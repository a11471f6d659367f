// SPDX-License-Identifier: Apache-2.0
// The cascade kernel for segments of few rows, private suffixes above all. It can finish the call:
// then it merges what the kernels in front left of its rows, and writes O.
#pragma once

#include "kernels/blocks/narrow_core.cuh"
#include "kernels/cascade/cascade_merge.cuh"
#include "kernels/cascade/cascade_policy.h"

namespace assay::ASSAY_TARGET {

/// Where the rows of a team go: to O when the launch finishes the call, else to the workspace.
template <class Core>
struct NarrowFinish {
  using E = typename Core::Element;
  using Number = typename Core::Number;

  const CascadeParams &params;
  const CascadeWork &work;
  int request_of_lane = 0; // rows mostly are of one request
  uint32_t covering = 0;   // its levels

  ASSAY_DEVICE void begin(int row) {
    request_of_lane = work.request(params.attention, row < work.num_rows ? row : 0);
  }
  ASSAY_DEVICE void meanwhile() {
    if (params.finish_level >= 0) covering = covering_levels(params, request_of_lane);
  }
  ASSAY_DEVICE void row(int row, bool exists, int dim, const Number (&o)[8], Number lse2) const {
    if (params.finish_level >= 0) {
      const int request = work.request(params.attention, exists ? row : 0);
      const bool same = request == request_of_lane;
      finish_cascade_row<E, Core::kDims>(
          params, exists, same ? covering : covering_levels(params, request), request,
          work.head(params.attention, row), dim, OwnState<Number>{work.state(params), lse2, o});
    } else if (exists) {
      store_partial<Core::kDims>(PartialParams{params.o_accum, params.lse_accum},
                                 static_cast<uint64_t>(work.partial_row(params, row)), dim, o,
                                 lse2);
    }
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
                     {warp / params.team_warps * params.team_warps, params.team_warps},
                     NarrowFinish<Core>{params, work});
  arch::wait_for_previous_grid();
}

} // namespace assay::ASSAY_TARGET
