// SPDX-License-Identifier: Apache-2.0
// paged_attention_v2: split-KV. Workers write fp32 partials of the segments they share, a second
// kernel merges them.
#pragma once

#include "kernels/common/merge_rows.cuh"
#include "kernels/decode/decode_core.cuh"
#include "kernels/plan/plan_kernel.cuh"

namespace assay::ASSAY_TARGET {

struct PagedAttentionV2Params {
  AttentionParams attention;
  PagedKvParams kv;
  SplitPlan plan;
  PartialParams partial;       // rows_per_slot = rows per block
  int32_t row_tiles_per_group; // plan.shape.units = num_kv_heads * row_tiles_per_group
};

/// Grid: plan.shape.workers blocks. A worker walks its items; a segment it holds whole goes
/// straight to O, any other to a partial slot.
template <class E, int kHeadDim, int kRowTiles>
ASSAY_KERNEL((DecodeCore<E, kHeadDim, kRowTiles>::kThreads),
             (DecodeCore<E, kHeadDim, kRowTiles>::kPolicy.min_blocks))
paged_attention_v2_partial(const ASSAY_GRID_CONSTANT PagedAttentionV2Params params) {
  using Core = DecodeCore<E, kHeadDim, kRowTiles>;
  const AttentionParams &attention = params.attention;
  ItemCursor cursor(params.plan, arch::block_idx_x(), PlanLoad{});
  WorkItem item;
  while (cursor.next(item)) {
    DecodeWork work;
    work.request = item.request;
    work.kv_head = item.unit / params.row_tiles_per_group;
    work.first_row = item.unit % params.row_tiles_per_group * Core::kRows;
    work.kv_begin = item.kv_begin;
    work.kv_end = item.kv_end;
    Core::run(attention, params.kv, work, [&](int row, int dim, RowSlice slice) {
      const float lse2 = slice.lse2(attention.scale_log2);
      slice.normalize();
      if (item.whole)
        store_final<E>(attention, work.request, work.kv_head * attention.group_size + row, dim,
                       slice.o, lse2);
      else
        store_partial<kHeadDim>(params.partial, item.slot, row - work.first_row, dim, slice.o,
                                lse2);
    });
    // The next item's ring overwrites the merge buffers that other threads may still be reading.
    arch::block_barrier();
  }
}

inline constexpr int kCombineThreads = 128;

/// Grid: one thread per (request, query head, eight components). Writes every row that no worker
/// held whole: merged partials, or 0 / -inf for a request without keys.
template <class E, int kHeadDim, int kRowTiles>
ASSAY_KERNEL(kCombineThreads, 1)
paged_attention_v2_combine(const ASSAY_GRID_CONSTANT PagedAttentionV2Params params) {
  constexpr int kSlices = kHeadDim / 8, kRowsPerTile = 8 * kRowTiles;
  const AttentionParams &attention = params.attention;
  const int64_t index = int64_t{arch::block_idx_x()} * kCombineThreads + arch::thread_idx();
  const int64_t row = index / kSlices;
  const int dim = static_cast<int>(index % kSlices) * 8;
  if (row >= int64_t{attention.batch} * attention.num_qo_heads) return;
  const int request = static_cast<int>(row / attention.num_qo_heads);
  const int head = static_cast<int>(row % attention.num_qo_heads);
  const int kv_head = head / attention.group_size, group_row = head % attention.group_size;
  const int unit = kv_head * params.row_tiles_per_group + group_row / kRowsPerTile;
  const SegmentSlots slots = segment_slots(params.plan, request, unit, PlanLoad{});
  if (slots.count == 1) return;
  const auto slot_row = [&](int i) {
    return slots.slot(i) * params.partial.rows_per_slot + group_row % kRowsPerTile;
  };
  const MergedSlice merged = merge_rows(
      slots.count, 1.0f, 1.0f,
      [&](int i) { return arch::global_load(params.partial.lse_accum + slot_row(i)); },
      [&](int i, float(&o)[8]) {
        Pack8<float>::load(params.partial.o_accum + slot_row(i) * kHeadDim + dim).unpack(o);
      });
  store_final<E>(attention, request, head, dim, merged.o, merged.lse);
}

} // namespace assay::ASSAY_TARGET
