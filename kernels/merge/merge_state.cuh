// SPDX-License-Identifier: Apache-2.0
// merge_state: (o_a, lse_a) + (o_b, lse_b) -> (o, lse), element-wise over [rows, heads, head_dim].
#pragma once

#include "kernels/arch/shuffle.cuh"
#include "kernels/arch/sync.cuh"
#include "kernels/arch/thread.cuh"
#include "kernels/common/row_output.cuh"
#include "kernels/merge/merge_params.h"

namespace assay::ASSAY_TARGET {

/// A power-of-two group of lanes inside one warp owns a state, so that in place (out == a or b)
/// every lane has read the LSEs before any is overwritten: one warp barrier orders them. (A head
/// cut across blocks is how an in-place merge corrupts its LSE.) Each o element is read and written
/// by one thread.
template <class E>
ASSAY_KERNEL(kMergeThreads, 1)
merge_state(const ASSAY_GRID_CONSTANT MergeStateParams params) {
  using Number = typename arch::Arithmetic<E>::Number;
  using RowSlice = SliceOf<Number>;
  const int64_t index = int64_t{arch::block_idx_x()} * kMergeThreads + arch::thread_idx();
  const int64_t state = index / params.lanes_per_state;
  const int lane = static_cast<int>(index % params.lanes_per_state);
  const bool active = state < params.num_states;
  const int64_t row = state / params.num_heads, head = state % params.num_heads;
  const auto lse_of = [&](const StateTensor &v) {
    return words_of<Number>(v.lse) + row * v.lse_stride_row + head * v.lse_stride_head;
  };
  const auto o_of = [&](const StateTensor &v) {
    return static_cast<E *>(v.o) + row * v.o_stride_row + head * v.o_stride_head;
  };
  Number lse_a = arch::neg_infinity(), lse_b = arch::neg_infinity();
  if (active) {
    lse_a = arch::global_load(lse_of(params.a));
    lse_b = arch::global_load(lse_of(params.b));
  }
  arch::warp_barrier();
  if (!active) return;
  const bool empty_a = arch::is_neg_infinity(lse_a), empty_b = arch::is_neg_infinity(lse_b);
  Number lse = empty_a ? lse_b : lse_a;
  for (int dim = 8 * lane; dim < params.head_dim; dim += 8 * params.lanes_per_state) {
    Pack8<E> result;
    if (empty_a || empty_b) {
      // Bit for bit the other side; zeros when both are empty, whatever o holds.
      if (empty_a && empty_b)
        result = Pack8<E>::pack(RowSlice::identity().o);
      else
        result = Pack8<E>::load((empty_a ? o_of(params.b) : o_of(params.a)) + dim);
    } else {
      Number o_a[8], o_b[8];
      Pack8<E>::load(o_of(params.a) + dim).unpack(o_a);
      Pack8<E>::load(o_of(params.b) + dim).unpack(o_b);
      RowSlice merged = RowSlice::from_normalized(lse_a, o_a);
      merged.merge(RowSlice::from_normalized(lse_b, o_b), params.scale);
      lse = merged.m + lse_in_unit(arch::log2_approx(merged.d), params.unit);
      merged.normalize();
      result = Pack8<E>::pack(merged.o);
    }
    result.store(o_of(params.out) + dim);
  }
  if (lane == 0 && params.out.lse != nullptr) arch::global_store(lse_of(params.out), lse);
}

} // namespace assay::ASSAY_TARGET
