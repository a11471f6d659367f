// SPDX-License-Identifier: Apache-2.0
// Definitions of DecodeLaunch; included only by the generated instantiations.
#pragma once

#include "kernels/blocks/plan_launch.cuh"
#include "kernels/blocks/with_core.cuh"
#include "kernels/decode/decode_launch.h"
#include "kernels/decode/paged_attention_v1.cuh"
#include "kernels/decode/paged_attention_v2.cuh"

#include <algorithm>

namespace assay::ASSAY_TARGET {

template <class Core>
assay_status launch_v1(const PagedV1Call &call, void *stream) {
  const PagedCall &paged = call.paged;
  const PagedAttentionV1Params params{paged.attention, paged.kv,
                                      paged.features,  paged.shape.tiles_per_kv_head,
                                      call.tile_warps, v1_tile_share(call.head_tiles, call.blocks)};
  constexpr size_t kSharedBytes =
      std::max<size_t>(sizeof(typename Core::SharedStorage), kV1SharedBytes);
  return launch_kernel<&paged_attention_v1<Core>, kSharedBytes>(
      "paged_attention_v1", {call.blocks, Core::kThreads, paged.attention.enable_pdl}, params,
      stream);
}

template <class Core>
assay_status launch_v2(const SplitKvCall &call, void *stream) {
  SplitKvParams params = split_kv_params(call);
  // The planner of this call is in front of it, and all that it reads from the plan is late.
  if (call.run_planner) params.attention.enable_pdl = false;
  const SplitPlanShape &shape = call.split.plan;
  return launch_kernel<&paged_attention_v2<Core>, sizeof(typename Core::SharedStorage)>(
      "paged_attention_v2",
      {int64_t{shape.workers} * shape.head_tiles, Core::kThreads, params.attention.enable_pdl},
      params, stream);
}

template <class Query, class Kv, int kHeadDim>
assay_status DecodeLaunch<Query, Kv, kHeadDim>::v1(const PagedV1Call &call, void *stream) {
  return with_core<Query, Kv, kHeadDim, kDecodeWarps, true>(call.paged.shape, [&](auto core) {
    return launch_v1<typename decltype(core)::type>(call, stream);
  });
}

template <class Query, class Kv, int kHeadDim>
assay_status DecodeLaunch<Query, Kv, kHeadDim>::v2(const SplitKvCall &call, void *stream) {
  if (call.run_planner)
    ASSAY_RETURN_IF_ERROR(
        launch_plan_kernel(call.split.plan, call.paged.kv.seq_lens, call.plan, stream));
  const auto launch = [&](auto core) {
    return launch_v2<typename decltype(core)::type>(call, stream);
  };
  return with_split_kv_core<Query, Kv, kHeadDim, true>(call, launch);
}

} // namespace assay::ASSAY_TARGET

/// A line of instantiations.def as an explicit instantiation, in assay::ASSAY_TARGET.
#define ASSAY_INSTANTIATE_DECODE(query, dtype, kv, kv_dtype, head_dim)                             \
  template struct DecodeLaunch<arch::query, arch::kv, head_dim>;
