// SPDX-License-Identifier: Apache-2.0
// merge_state: merges (o_a, lse_a) and (o_b, lse_b) to (o, lse), for every (row, head).
#pragma once

#include "kernels/arch/shuffle.cuh"
#include "kernels/arch/sync.cuh"
#include "kernels/arch/thread.cuh"
#include "kernels/common/row_output.cuh"
#include "kernels/merge/merge_params.h"
#include "kernels/merge/row_head.cuh"

namespace assay::ASSAY_TARGET {

/// Merges b into a and returns the LSE of the result. Where one side is empty the result has the
/// bits of the other side. Where both are empty it is zeros, whatever their o holds.
template <class Number, class E>
ASSAY_DEVICE Number merge_pair(Number lse_a, Number lse_b, Pack8<E> &a, const Pack8<E> &b,
                               float scale, float unit) {
  using RowSlice = SliceOf<Number>;
  const bool empty_a = arch::is_neg_infinity(lse_a), empty_b = arch::is_neg_infinity(lse_b);
  if (empty_a || empty_b) {
    if (empty_a) {
      a = b;
    }
    if (empty_a && empty_b) a = Pack8<E>::pack(RowSlice::identity().o);
    return empty_a ? lse_b : lse_a;
  }
  Number o_a[8], o_b[8];
  a.unpack(o_a);
  b.unpack(o_b);
  RowSlice merged = RowSlice::from_normalized(lse_a, o_a);
  merged.merge(RowSlice::from_normalized(lse_b, o_b), scale);
  const Number lse = merged.m + lse_in_unit(arch::log2_approx(merged.d), unit);
  const Number inverse = Scalar<Number>::reciprocal(merged.d); // neither side is empty
  ASSAY_UNROLL
  for (int k = 0; k < 8; ++k)
    merged.o[k] = merged.o[k] * inverse;
  a = Pack8<E>::pack(merged.o);
  return lse;
}

/// A group of lanes inside one warp owns a state; their number is a power of two. In place (out is
/// a or b) every lane must have read the LSEs before a lane overwrites one: a warp barrier orders
/// that. (A head that is cut across blocks is how an in-place merge corrupts its LSE.) Each element
/// of o is read and written by one thread.
template <class E>
ASSAY_KERNEL(kMergeThreads, 1)
merge_state(const ASSAY_GRID_CONSTANT MergeStateParams params) {
  using Number = typename arch::Arithmetic<E>::Number;
  const int thread = static_cast<int>(arch::thread_idx());
  const int lanes = 1 << params.lanes_log2, lane = thread & (lanes - 1);
  const int groups = kMergeThreads >> params.lanes_log2;
  RowHead at[kMergeGroupStates];
  bool active[kMergeGroupStates];
  ASSAY_UNROLL
  for (int j = 0; j < kMergeGroupStates; ++j) {
    const int64_t state = (int64_t{arch::block_idx_x()} * kMergeGroupStates + j) * groups +
                          (thread >> params.lanes_log2);
    active[j] = state < params.num_states;
    at[j] = RowHead::of(state, params.num_heads);
  }
  const auto lse_of = [&](const StateTensor &v, int j) {
    return words_of<Number>(v.lse) + at[j].row * v.lse_stride_row + at[j].head * v.lse_stride_head;
  };
  const auto o_of = [&](const StateTensor &v, int j) {
    return static_cast<E *>(v.o) + at[j].row * v.out_stride_row + at[j].head * v.out_stride_head;
  };
  Number lse_a[kMergeGroupStates], lse_b[kMergeGroupStates], lse[kMergeGroupStates];
  Pack8<E> a[kMergeGroupStates], b[kMergeGroupStates];
  const auto load_o = [&](int dim) {
    ASSAY_UNROLL
    for (int j = 0; j < kMergeGroupStates; ++j) {
      if (!active[j] || dim >= params.head_dim) continue;
      a[j] = Pack8<E>::load(o_of(params.a, j) + dim);
      b[j] = Pack8<E>::load(o_of(params.b, j) + dim);
    }
  };
  ASSAY_UNROLL
  for (int j = 0; j < kMergeGroupStates; ++j) {
    lse_a[j] = active[j] ? arch::global_load(lse_of(params.a, j)) : Number(arch::neg_infinity());
    lse_b[j] = active[j] ? arch::global_load(lse_of(params.b, j)) : Number(arch::neg_infinity());
  }
  load_o(8 * lane);
  arch::warp_barrier();
  for (int dim = 8 * lane; dim < params.head_dim; dim += 8 * lanes) {
    if (dim > 8 * lane) load_o(dim);
    ASSAY_UNROLL
    for (int j = 0; j < kMergeGroupStates; ++j) {
      lse[j] = merge_pair(lse_a[j], lse_b[j], a[j], b[j], params.scale, params.unit);
      if (active[j]) a[j].store(o_of(params.out, j) + dim);
    }
  }
  if (lane != 0 || params.out.lse == nullptr) return;
  ASSAY_UNROLL
  for (int j = 0; j < kMergeGroupStates; ++j)
    if (active[j]) arch::global_store(lse_of(params.out, j), lse[j]);
}

} // namespace assay::ASSAY_TARGET
