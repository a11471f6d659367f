// SPDX-License-Identifier: Apache-2.0
// Definitions of CascadeLaunch; included only by the generated instantiations.
#pragma once

#include "kernels/cascade/cascade_attention.cuh"
#include "kernels/cascade/cascade_launch.h"
#include "kernels/host/launch_kernel.cuh"

namespace assay::ASSAY_TARGET {

template <class E, int kHeadDim>
assay_status CascadeLaunch<E, kHeadDim>::run(const CascadeCall &call, void *stream) {
  using Core = CascadeCore<E, kHeadDim>;
  CascadeParams params{};
  params.attention = call.attention;
  params.num_levels = static_cast<int32_t>(call.levels.size());
  params.splits = call.splits;
  params.o_accum = call.o_accum;
  params.lse_accum = call.lse_accum;
  const AttentionParams &a = call.attention;
  int64_t blocks = 0;
  for (int l = 0; l < params.num_levels; ++l) {
    params.levels[l] = {call.levels[l].kv, call.levels[l].segment_indptr,
                        static_cast<int32_t>(blocks)};
    blocks += cascade_tile_slots(call.levels[l].kv.rows, a.batch, a.group_size, Core::kRows) *
              call.splits * a.num_kv_heads;
  }
  if (blocks > 0)
    ASSAY_RETURN_IF_ERROR(launch_kernel(
        &cascade_partial<E, kHeadDim>, "cascade_partial",
        {blocks, Core::kThreads, sizeof(typename Core::SharedStorage)}, params, stream));
  const int64_t threads = int64_t{a.batch} * a.num_qo_heads * (kHeadDim / 8);
  return launch_kernel(
      &cascade_merge<E, kHeadDim>, "cascade_merge",
      {(threads + kCascadeMergeThreads - 1) / kCascadeMergeThreads, kCascadeMergeThreads}, params,
      stream);
}

} // namespace assay::ASSAY_TARGET

/// A line of instantiations.def as an explicit instantiation, in assay::ASSAY_TARGET.
#define ASSAY_INSTANTIATE_CASCADE(element, dtype, head_dim)                                        \
  template struct CascadeLaunch<arch::element, head_dim>;
