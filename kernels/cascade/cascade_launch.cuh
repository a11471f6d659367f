// SPDX-License-Identifier: Apache-2.0
// Definitions of CascadeLaunch: a kernel for the levels of each path, then one that finishes the
// call. Included only by the generated instantiations.
#pragma once

#include "kernels/cascade/cascade_launch.h"
#include "kernels/cascade/cascade_merge.cuh"
#include "kernels/cascade/cascade_narrow.cuh"
#include "kernels/cascade/cascade_tiles.cuh"
#include "kernels/cascade/cascade_wide.cuh"
#include "kernels/host/launch_kernel.cuh"

#include <utility>

namespace assay::ASSAY_TARGET {

/// The kernel of a path for E and kHeadDim: how it starts and what a block has.
struct CascadeKernel {
  assay_status (*launch)(const char *name, const LaunchShape &shape, const CascadeParams &params,
                         void *stream);
  const char *name;
  int rows, threads;
};

template <class Core, auto kEntry>
CascadeKernel cascade_kernel(const char *name) {
  return {&launch_kernel<kEntry, sizeof(typename Core::SharedStorage), CascadeParams>, name,
          Core::kRows, Core::kThreads};
}

template <class E, int kHeadDim>
CascadeKernel cascade_kernel_of(const CascadeShape &shape, CascadePath path) {
  using Wide = Sm90Core<DecodeTypes<E, E>, kHeadDim>;
  if (path == CascadePath::kSm90) return cascade_kernel<Wide, &cascade_wide<Wide>>("cascade_wide");
  if (path == CascadePath::kMma)
    return cascade_kernel<MmaCore<E, kHeadDim>, &cascade_tiles<E, kHeadDim>>("cascade_tiles");
  if constexpr (kHeadDim != 256) {
    using Narrow = NarrowCore<E, kHeadDim, 2>;
    if (narrow_row_tiles(shape) == 2)
      return cascade_kernel<Narrow, &cascade_narrow<Narrow>>("cascade_narrow");
  }
  using Narrow = NarrowCore<E, kHeadDim, 1>;
  return cascade_kernel<Narrow, &cascade_narrow<Narrow>>("cascade_narrow");
}

/// The launches of one call; each but the first may start early, it waits before it writes.
template <class E, int kHeadDim>
class CascadeLaunches {
public:
  CascadeLaunches(const CascadeCall &call, void *stream) : call_(call), stream_(stream) {}

  /// The levels of a path but for the one that finishes the call.
  assay_status path(CascadePath path) {
    CascadeParams params = begin();
    const CascadeKernel kernel = cascade_kernel_of<E, kHeadDim>(call_.shape, path);
    int64_t blocks = 0;
    for (int l = 0; l < call_.num_levels; ++l) {
      const CascadeLevelCall &level = call_.level[l];
      if (level.schedule.path != path || l == call_.finish) continue;
      add_level(params, level, blocks);
      blocks += work_items(level, kernel);
    }
    return blocks == 0 ? ASSAY_OK : launch(kernel, params, blocks, kNarrowWarps, 0);
  }

  assay_status finish() {
    CascadeParams params = begin();
    for (const CascadeLevelCall &level : call_.levels())
      add_level(params, level, 0);
    params.finish_level = call_.finish;
    if (call_.finish < 0) return merge(params);
    const CascadeLevelCall &level = call_.level[call_.finish];
    const CascadeKernel kernel = cascade_kernel_of<E, kHeadDim>(call_.shape, CascadePath::kNarrow);
    return launch(kernel, params, work_items(level, kernel), level.schedule.warps,
                  kUncoveredBlocks);
  }

private:
  CascadeParams begin() const {
    CascadeParams params{};
    params.attention = call_.attention;
    params.num_states = static_cast<int32_t>(call_.states);
    params.finish_level = -1;
    params.o_accum = call_.o_accum;
    params.lse_accum = call_.lse_accum;
    return params;
  }

  static void add_level(CascadeParams &params, const CascadeLevelCall &level, int64_t first_block) {
    params.levels[params.num_levels++] = {level.kv, level.segment_indptr,
                                          static_cast<int32_t>(first_block), level.schedule.splits,
                                          level.first_state};
  }

  int64_t work_items(const CascadeLevelCall &level, const CascadeKernel &kernel) const {
    const CascadeShape &shape = call_.shape;
    return cascade_tile_slots(level.kv.rows, shape.batch, shape.gqa_group_size, kernel.rows) *
           shape.kv_heads * level.schedule.splits;
  }

  /// `items`: blocks, of the narrow kernel teams.
  assay_status launch(const CascadeKernel &kernel, CascadeParams &params, int64_t items,
                      int team_warps, int more_blocks) {
    params.team_warps = team_warps;
    params.num_teams = static_cast<int32_t>(items);
    const int teams = kNarrowWarps / team_warps;
    const int64_t blocks = (items + teams - 1) / teams + more_blocks;
    const bool enable_pdl = std::exchange(follows_, true);
    return kernel.launch(kernel.name, {blocks, kernel.threads, enable_pdl}, params, stream_);
  }

  assay_status merge(const CascadeParams &params) {
    const int64_t threads =
        int64_t{call_.attention.batch} * call_.attention.num_qo_heads * (kHeadDim / 8);
    const int64_t blocks = (threads + kCascadeMergeThreads - 1) / kCascadeMergeThreads;
    return launch_kernel<&cascade_merge<E, kHeadDim>>(
        "cascade_merge", {blocks, kCascadeMergeThreads, follows_}, params, stream_);
  }

  const CascadeCall &call_;
  void *stream_;
  bool follows_ = false; // a kernel of this call
};

template <class E, int kHeadDim>
assay_status CascadeLaunch<E, kHeadDim>::run(const CascadeCall &call, void *stream) {
  CascadeLaunches<E, kHeadDim> launches(call, stream);
  for (const CascadePath path : kCascadePaths)
    ASSAY_RETURN_IF_ERROR(launches.path(path));
  return launches.finish();
}

} // namespace assay::ASSAY_TARGET

/// A line of instantiations.def as an explicit instantiation, in assay::ASSAY_TARGET.
#define ASSAY_INSTANTIATE_CASCADE(element, dtype, head_dim)                                        \
  template struct CascadeLaunch<arch::element, head_dim>;
