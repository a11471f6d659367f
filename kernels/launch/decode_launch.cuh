// SPDX-License-Identifier: Apache-2.0
// Definitions of DecodeLaunch; included only by the generated instantiations and the planner's
// user.
#pragma once

#include "kernels/cascade/cascade_attention.cuh"
#include "kernels/decode/paged_attention_v1.cuh"
#include "kernels/decode/paged_attention_v2.cuh"
#include "kernels/launch/decode_launch.h"
#include "kernels/launch/launch_kernel.cuh"
#include "kernels/launch/plan_launch.cuh"

namespace assay::ASSAY_TARGET {

inline int64_t blocks_for(int64_t threads, int block) { return (threads + block - 1) / block; }

template <class E, int kHeadDim, int kRowTiles>
inline assay_status v1_rows(const PagedCall &call, void *stream) {
  using Core = DecodeCore<E, kHeadDim, kRowTiles, kV1Warps>;
  const AttentionParams &a = call.attention;
  const PagedAttentionV1Params params{a, call.kv, row_tiles_per_group(a.group_size)};
  const int64_t blocks = int64_t{a.batch} * a.num_kv_heads * params.row_tiles_per_group;
  return launch_kernel(&paged_attention_v1<E, kHeadDim, kRowTiles>, "paged_attention_v1",
                       {blocks, Core::kThreads, sizeof(typename Core::SharedStorage)}, params,
                       stream);
}

template <class E, int kHeadDim, int kRowTiles, int kWarps>
inline assay_status v2_rows(const PagedV2Call &call, void *stream) {
  using Core = DecodeCore<E, kHeadDim, kRowTiles, kWarps>;
  const AttentionParams &a = call.paged.attention;
  PagedAttentionV2Params params{};
  params.attention = a;
  params.kv = call.paged.kv;
  const PlanParams plan = plan_params(call.layout.shape, nullptr, call.plan);
  params.plan = {call.layout.shape, plan.workers, plan.request_items, plan.counters};
  params.partial = call.partial;
  params.row_tiles_per_group = row_tiles_per_group(a.group_size);
  return launch_kernel(&paged_attention_v2<E, kHeadDim, kRowTiles, kWarps>, "paged_attention_v2",
                       {int64_t{call.layout.shape.workers} * call.layout.shape.units,
                        Core::kThreads, sizeof(typename Core::SharedStorage)},
                       params, stream);
}

template <class E, int kHeadDim>
assay_status DecodeLaunch<E, kHeadDim>::v1(const PagedCall &call, void *stream) {
  return decode_row_tiles(call.attention.group_size) == 1 ? v1_rows<E, kHeadDim, 1>(call, stream)
                                                          : v1_rows<E, kHeadDim, 2>(call, stream);
}

template <class E, int kHeadDim>
assay_status DecodeLaunch<E, kHeadDim>::v2(const PagedV2Call &call, void *stream) {
  if (call.run_planner)
    ASSAY_RETURN_IF_ERROR(
        launch_plan(call.layout.shape, call.paged.kv.seq_lens, call.plan, stream));
  const bool one_row_tile = decode_row_tiles(call.paged.attention.group_size) == 1;
  if (call.layout.warps == 8)
    return one_row_tile ? v2_rows<E, kHeadDim, 1, 8>(call, stream)
                        : v2_rows<E, kHeadDim, 2, 8>(call, stream);
  return one_row_tile ? v2_rows<E, kHeadDim, 1, 4>(call, stream)
                      : v2_rows<E, kHeadDim, 2, 4>(call, stream);
}

template <class E, int kHeadDim>
assay_status DecodeLaunch<E, kHeadDim>::cascade(const CascadeCall &call, void *stream) {
  using Core = CascadeCore<E, kHeadDim>;
  CascadeParams params{};
  params.attention = call.attention;
  params.num_levels = static_cast<int32_t>(call.levels.size());
  params.splits = call.splits;
  params.o_accum = call.o_pointer;
  params.lse_accum = call.lse_pointer;
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
  return launch_kernel(&cascade_merge<E, kHeadDim>, "cascade_merge",
                       {blocks_for(threads, kCascadeMergeThreads), kCascadeMergeThreads}, params,
                       stream);
}

} // namespace assay::ASSAY_TARGET
