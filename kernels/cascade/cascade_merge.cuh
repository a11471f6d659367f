// SPDX-License-Identifier: Apache-2.0
// The end of a cascade call: the partial states of all levels and splits of a row are merged.
#pragma once

#include "kernels/arch/grid_order.cuh"
#include "kernels/cascade/cascade_work.cuh"
#include "kernels/common/merge_lanes.cuh"

namespace assay::ASSAY_TARGET {

inline constexpr int kCascadeMergeThreads = 128;

/// Whether a level serves a request.
ASSAY_DEVICE bool is_covered(const CascadeLevelParams &level, int request) {
  const int first = arch::global_load_readonly(level.segment_indptr);
  const int end = arch::global_load_readonly(level.segment_indptr + level.kv.rows);
  return first <= request && request < end;
}

/// Which levels cover a request, one bit per level. Of a request that a level does not cover,
/// nothing was written.
ASSAY_DEVICE uint32_t covering_levels(const CascadeParams &params, int request) {
  uint32_t covering = 0;
  ASSAY_UNROLL_BY(2)
  for (int l = 0; l < params.num_levels; ++l)
    covering |= is_covered(params.levels[l], request) ? 1u << l : 0u;
  return covering;
}

/// A state that is in registers and not in the workspace. `state` is its index, or negative where
/// there is no such state.
template <class Number>
struct OwnState {
  int state;
  Number lse;
  const Number (&o)[8];
};

/// Merges the states of (request, head) in order, components dim .. dim + 7, and writes O. All
/// lanes of the warp take part, kHeadDim / 8 of them on a row. A lane without a row (!exists)
/// passes `covering` 0 and no own state.
template <class E, int kHeadDim, class Number>
ASSAY_DEVICE void finish_cascade_row(const CascadeParams &params, bool exists, uint32_t covering,
                                     int request, int head, int dim, const OwnState<Number> &own) {
  constexpr int kBatch = 8;
  const AttentionParams &attention = params.attention;
  const int64_t rows = int64_t{attention.batch} * attention.num_qo_heads;
  const int64_t row = int64_t{request} * attention.num_qo_heads + head;
  const bool by_all = covering == (1u << params.num_levels) - 1;
  const auto covered = [&](int state) {
    if (by_all) return true;
    int level = 0;
    while (level + 1 < params.num_levels && params.levels[level + 1].first_state <= state)
      ++level;
    return (covering >> level & 1) != 0;
  };
  const auto merged = merge_by_lanes<kHeadDim / 8, Number, kBatch>(
      params.num_states, 1.0f,
      [&](int i) {
        if (i == own.state) return own.lse;
        return covered(i) ? arch::global_load(words_of<Number>(params.lse_accum) + i * rows + row)
                          : Number(arch::neg_infinity());
      },
      [&](int i) {
        if (i == own.state) return Pack8<Number>::pack(own.o);
        return Pack8<Number>::load(words_of<Number>(params.o_accum) + (i * rows + row) * kHeadDim +
                                   dim);
      },
      covered, [](Number m) { return m; });
  if (!exists) return;
  using State = SliceOf<Number>;
  State state = State::from_normalized(merged.m, merged.o);
  state.d = merged.d;
  const Number lse2 = state.is_empty() ? state.m : Number(state.m + arch::log2_approx(state.d));
  state.normalize();
  store_final<E>(attention, request, head, dim, state.o, lse2);
}

/// Grid: a thread per (request, query head, eight components).
template <class E, int kHeadDim>
ASSAY_KERNEL(kCascadeMergeThreads, 1)
cascade_merge(const ASSAY_GRID_CONSTANT CascadeParams params) {
  constexpr int kSlices = kHeadDim / 8;
  using Number = typename arch::Arithmetic<E>::Number;
  const AttentionParams &attention = params.attention;
  const int64_t index = int64_t{arch::block_idx_x()} * kCascadeMergeThreads + arch::thread_idx();
  const int64_t row = index / kSlices;
  arch::wait_for_previous_grid();
  const bool exists = row < int64_t{attention.batch} * attention.num_qo_heads;
  const int request = static_cast<int>(row / attention.num_qo_heads);
  const Number none[8] = {};
  finish_cascade_row<E, kHeadDim>(params, exists, exists ? covering_levels(params, request) : 0u,
                                  request, static_cast<int>(row % attention.num_qo_heads),
                                  static_cast<int>(index % kSlices) * 8,
                                  OwnState<Number>{-1, 0.0f, none});
}

/// Writes the rows of requests that the finishing level does not cover. `threads` threads share
/// them, and this one is number `first`.
template <class E, int kHeadDim>
ASSAY_DEVICE void finish_uncovered_rows(const CascadeParams &params, int first, int threads) {
  constexpr int kSlices = kHeadDim / 8;
  using Number = typename arch::Arithmetic<E>::Number;
  const AttentionParams &attention = params.attention;
  const CascadeLevelParams &level = params.levels[params.finish_level];
  const int front = arch::global_load_readonly(level.segment_indptr); // requests before the level's
  const int end = arch::global_load_readonly(level.segment_indptr + level.kv.rows);
  const int heads = attention.num_qo_heads;
  const int64_t slices = int64_t{front + attention.batch - end} * heads * kSlices;
  const Number none[8] = {};
  for (int64_t i = first; arch::any(i < slices); i += threads) {
    const int64_t row = i / kSlices;
    const auto place = static_cast<int>(row / heads); // index among the requests left out
    const int request = place < front ? place : end + place - front;
    finish_cascade_row<E, kHeadDim>(
        params, i < slices, i < slices ? covering_levels(params, request) : 0u, request,
        static_cast<int>(row % heads), static_cast<int>(i % kSlices) * 8,
        OwnState<Number>{-1, 0.0f, none});
  }
}

} // namespace assay::ASSAY_TARGET
