// SPDX-License-Identifier: Apache-2.0
// Definitions of DecodeLaunch; included only by the generated instantiations.
#pragma once

#include "kernels/decode/decode_launch.h"
#include "kernels/decode/paged_attention_v1.cuh"
#include "kernels/decode/paged_attention_v2.cuh"
#include "kernels/decode/plan_launch.cuh"

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
  return launch_kernel(&paged_attention_v1<Core>, "paged_attention_v1",
                       {call.blocks, Core::kThreads, kSharedBytes, paged.attention.early_start},
                       params, stream);
}

template <class Core>
assay_status launch_v2(const PagedV2Call &call, void *stream) {
  PagedAttentionV2Params params{};
  params.attention = call.paged.attention;
  // The planner of this call is in front of it, and all that it reads from the plan is late.
  if (call.run_planner) params.attention.early_start = false;
  params.kv = call.paged.kv;
  params.features = call.paged.features;
  const SplitPlanShape &shape = call.split.plan;
  const PlanParams plan = plan_params(shape, nullptr, call.plan);
  params.plan = {shape, plan.workers, plan.request_items, plan.counters};
  params.partial = call.partial;
  params.tiles_per_kv_head = call.paged.shape.tiles_per_kv_head;
  return launch_kernel(&paged_attention_v2<Core>, "paged_attention_v2",
                       {int64_t{shape.workers} * shape.head_tiles, Core::kThreads,
                        sizeof(typename Core::SharedStorage), params.attention.early_start},
                       params, stream);
}

/// Calls f with a null pointer to the DecodeCore that serves the shape.
template <class Query, class Kv, int kHeadDim, int kWarps, class F>
assay_status with_core(const PagedShape &shape, F f) {
  const auto with_rows = [&](auto row_tiles) -> assay_status {
    constexpr int kRowTiles = decltype(row_tiles)::value;
    using Types = DecodeTypes<Query, Kv>;
    // Softcap and sinks are fp32 arithmetic; build_paged_shape() refuses them for other numbers.
    if constexpr (std::is_same_v<typename arch::Arithmetic<Query>::Number, float>)
      if (shape.features)
        return f(static_cast<DecodeCore<Types, kHeadDim, kRowTiles, kWarps, true> *>(nullptr));
    return f(static_cast<DecodeCore<Types, kHeadDim, kRowTiles, kWarps, false> *>(nullptr));
  };
  if constexpr (decode_row_tiles(16, kHeadDim) == 2)
    if (shape.row_tiles == 2) return with_rows(std::integral_constant<int, 2>{});
  return with_rows(std::integral_constant<int, 1>{});
}

template <class Query, class Kv, int kHeadDim>
assay_status DecodeLaunch<Query, Kv, kHeadDim>::v1(const PagedV1Call &call, void *stream) {
  return with_core<Query, Kv, kHeadDim, kV1Warps>(call.paged.shape, [&](auto *core) {
    return launch_v1<std::remove_pointer_t<decltype(core)>>(call, stream);
  });
}

template <class Query, class Kv, int kHeadDim>
assay_status DecodeLaunch<Query, Kv, kHeadDim>::v2(const PagedV2Call &call, void *stream) {
  if (call.run_planner)
    ASSAY_RETURN_IF_ERROR(
        launch_plan_kernel(call.split.plan, call.paged.kv.seq_lens, call.plan, stream));
  const auto launch = [&](auto *core) {
    return launch_v2<std::remove_pointer_t<decltype(core)>>(call, stream);
  };
  // Eight warps do not fit with head_dim 256 (v2_warps).
  if constexpr (kHeadDim < 256)
    if (call.split.warps == 8) return with_core<Query, Kv, kHeadDim, 8>(call.paged.shape, launch);
  return with_core<Query, Kv, kHeadDim, 4>(call.paged.shape, launch);
}

} // namespace assay::ASSAY_TARGET

/// A line of instantiations.def as an explicit instantiation, in assay::ASSAY_TARGET.
#define ASSAY_INSTANTIATE_DECODE(query, dtype, kv, kv_dtype, head_dim)                             \
  template struct DecodeLaunch<arch::query, arch::kv, head_dim>;
