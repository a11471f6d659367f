// SPDX-License-Identifier: Apache-2.0
// Which DecodeCore serves a call, and the parameters of a split-KV kernel.
#pragma once

#include "kernels/blocks/decode_core.cuh"
#include "kernels/blocks/split_kv_call.h"
#include "kernels/plan/plan_kernel.cuh"

#include <type_traits>

namespace assay::ASSAY_TARGET {

/// Calls f with the type of the DecodeCore that serves the shape. Without kFeatures no core
/// with features is compiled.
template <class Query, class Kv, int kHeadDim, int kWarps, bool kFeatures, class F>
assay_status with_core(const PagedShape &shape, F f) {
  const auto with_rows = [&](auto row_tiles) -> assay_status {
    constexpr int kRowTiles = decltype(row_tiles)::value;
    using Types = DecodeTypes<Query, Kv>;
    // Softcap and sinks are fp32 arithmetic; build_paged_shape() refuses them for other numbers.
    if constexpr (kFeatures && std::is_same_v<typename arch::Arithmetic<Query>::Number, float>)
      if (shape.features)
        return f(std::type_identity<DecodeCore<Types, kHeadDim, kRowTiles, kWarps, true>>{});
    return f(std::type_identity<DecodeCore<Types, kHeadDim, kRowTiles, kWarps, false>>{});
  };
  if constexpr (decode_row_tiles(16, kHeadDim) == 2)
    if (shape.row_tiles == 2) return with_rows(std::integral_constant<int, 2>{});
  return with_rows(std::integral_constant<int, 1>{});
}

/// Does the same for a split-KV kernel, with as many warps as the plan of the call is for.
template <class Query, class Kv, int kHeadDim, bool kFeatures, class F>
assay_status with_split_kv_core(const SplitKvCall &call, F f) {
  // Eight warps do not fit with head_dim 256 (split_kv_warps).
  if constexpr (kHeadDim < 256)
    if (call.split.warps == 8)
      return with_core<Query, Kv, kHeadDim, 8, kFeatures>(call.paged.shape, f);
  return with_core<Query, Kv, kHeadDim, 4, kFeatures>(call.paged.shape, f);
}

/// The parameters of a checked call.
inline SplitKvParams split_kv_params(const SplitKvCall &call) {
  SplitKvParams params{};
  params.attention = call.paged.attention;
  params.kv = call.paged.kv;
  params.features = call.paged.features;
  const PlanParams plan = plan_params(call.split.plan, nullptr, call.plan);
  params.plan = {call.split.plan, plan.workers, plan.request_items, plan.counters};
  params.partial = call.partial;
  params.tiles_per_kv_head = call.paged.shape.tiles_per_kv_head;
  return params;
}

} // namespace assay::ASSAY_TARGET
