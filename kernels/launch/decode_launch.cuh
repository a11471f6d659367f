// SPDX-License-Identifier: Apache-2.0
// Definitions of DecodeLaunch; included only by the generated instantiations and the planner's
// user.
#pragma once

#include "kernels/decode/paged_attention_v1.cuh"
#include "kernels/decode/paged_attention_v2.cuh"
#include "kernels/launch/cascade_launch.cuh"
#include "kernels/launch/decode_launch.h"
#include "kernels/launch/launch_kernel.cuh"
#include "kernels/launch/plan_launch.cuh"

#include <algorithm>

namespace assay::ASSAY_TARGET {

template <class Core>
assay_status launch_v1(const PagedCall &call, void *stream) {
  const PagedAttentionV1Params params{
      call.attention,    call.kv,
      call.features,     call.variant.tiles_per_group,
      call.v1_row_warps, v1_tile_share(call.v1_row_tiles, call.v1_blocks)};
  constexpr size_t kSharedBytes =
      std::max<size_t>(sizeof(typename Core::SharedStorage), kV1SharedBytes);
  return launch_kernel(&paged_attention_v1<Core>, "paged_attention_v1",
                       {call.v1_blocks, Core::kThreads, kSharedBytes, call.attention.early_start},
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
  const PlanParams plan = plan_params(call.layout.shape, nullptr, call.plan);
  params.plan = {call.layout.shape, plan.workers, plan.request_items, plan.counters};
  params.partial = call.partial;
  params.row_tiles_per_group = call.paged.variant.tiles_per_group;
  return launch_kernel(&paged_attention_v2<Core>, "paged_attention_v2",
                       {int64_t{call.layout.shape.workers} * call.layout.shape.units,
                        Core::kThreads, sizeof(typename Core::SharedStorage),
                        params.attention.early_start},
                       params, stream);
}

/// Calls f with a null pointer to the DecodeCore of the variant.
template <class Query, class Kv, int kHeadDim, int kWarps, class F>
assay_status with_core(const DecodeVariant &variant, F f) {
  const auto with_rows = [&](auto row_tiles) -> assay_status {
    constexpr int kRowTiles = decltype(row_tiles)::value;
    using Types = DecodeTypes<Query, Kv>;
    // Softcap and sinks are fp32 arithmetic; check_features() refuses them for other numbers.
    if constexpr (std::is_same_v<typename arch::Arithmetic<Query>::Number, float>)
      if (variant.hooks)
        return f(static_cast<DecodeCore<Types, kHeadDim, kRowTiles, kWarps, true> *>(nullptr));
    return f(static_cast<DecodeCore<Types, kHeadDim, kRowTiles, kWarps, false> *>(nullptr));
  };
  if constexpr (decode_row_tiles(16, kHeadDim) == 2)
    if (variant.row_tiles == 2) return with_rows(std::integral_constant<int, 2>{});
  return with_rows(std::integral_constant<int, 1>{});
}

template <class Query, class Kv, int kHeadDim>
assay_status DecodeLaunch<Query, Kv, kHeadDim>::v1(const PagedCall &call, void *stream) {
  return with_core<Query, Kv, kHeadDim, kV1Warps>(call.variant, [&](auto *core) {
    return launch_v1<std::remove_pointer_t<decltype(core)>>(call, stream);
  });
}

template <class Query, class Kv, int kHeadDim>
assay_status DecodeLaunch<Query, Kv, kHeadDim>::v2(const PagedV2Call &call, void *stream) {
  if (call.run_planner)
    ASSAY_RETURN_IF_ERROR(
        launch_plan(call.layout.shape, call.paged.kv.seq_lens, call.plan, stream));
  const auto launch = [&](auto *core) {
    return launch_v2<std::remove_pointer_t<decltype(core)>>(call, stream);
  };
  // Eight warps do not fit with head_dim 256 (v2_warps).
  if constexpr (kHeadDim < 256)
    if (call.layout.warps == 8)
      return with_core<Query, Kv, kHeadDim, 8>(call.paged.variant, launch);
  return with_core<Query, Kv, kHeadDim, 4>(call.paged.variant, launch);
}

template <class Query, class Kv, int kHeadDim>
assay_status DecodeLaunch<Query, Kv, kHeadDim>::cascade(const CascadeCall &call, void *stream) {
  if constexpr (std::is_same_v<Query, Kv>) return launch_cascade<Query, kHeadDim>(call, stream);
  return set_error(ASSAY_UNSUPPORTED, "cascade_attention has no fp8 instantiation");
}

} // namespace assay::ASSAY_TARGET
