// SPDX-License-Identifier: Apache-2.0
// A (row, head) of merge_states: where its states are, and where its result goes.
#pragma once

#include "kernels/common/merge_lanes.cuh"
#include "kernels/merge/merge_params.h"
#include "kernels/merge/row_head.cuh"

namespace assay::ASSAY_TARGET {

template <class E>
struct MergeRow {
  using Number = typename arch::Arithmetic<E>::Number;

  const MergeStatesParams &params;
  const E *first_o; // O of the first state
  const Number *first_lse;
  int row, head, count = 0; // count: of states
  bool exists;

  /// The index-th (row, head). Behind the last one there are no states.
  ASSAY_DEVICE MergeRow(const MergeStatesParams &p, int64_t index) : params(p) {
    const RowHead at = RowHead::of(index, p.num_heads);
    row = static_cast<int>(at.row);
    head = static_cast<int>(at.head);
    exists = at.row < p.num_rows;
    int64_t begin = 0;
    if (exists) {
      begin = at.row * p.num_states;
      count = p.num_states;
      if (p.indptr != nullptr) {
        begin = arch::global_load_readonly(p.indptr + row);
        count = static_cast<int>(arch::global_load_readonly(p.indptr + row + 1) - begin);
      }
    }
    first_o =
        static_cast<const E *>(p.in.o) + begin * p.in.out_stride_row + head * p.in.out_stride_head;
    first_lse =
        words_of<Number>(p.in.lse) + begin * p.in.lse_stride_row + head * p.in.lse_stride_head;
  }

  /// Eight components of a state from `dim` on. A lane past head_dim loads what it does not use.
  ASSAY_DEVICE Pack8<E> o(int state, int dim) const {
    return Pack8<E>::load(first_o + state * params.in.out_stride_row +
                          (dim < params.head_dim ? dim : 0));
  }
  ASSAY_DEVICE Number lse(int state) const {
    return arch::global_load(first_lse + state * params.in.lse_stride_row);
  }

  /// Writes the result. Where one state alone has a weight, the result has its bits, also the
  /// payloads of NaNs.
  ASSAY_DEVICE void store(int dim, const MergedStates<Number> &sum) const {
    if (!exists || dim >= params.head_dim) return;
    E *out = static_cast<E *>(params.out.o) + row * params.out.out_stride_row +
             head * params.out.out_stride_head + dim;
    using State = SliceOf<Number>;
    Number lse2 = sum.m; // stays where no state has a weight
    if (sum.weighted == 1) {
      lse2 = lse(sum.last);
      o(sum.last, dim).store(out);
    } else {
      State state = State::from_normalized(sum.m, sum.o);
      state.d = sum.d;
      if (!(sum.d == 0.0f)) lse2 = sum.m + lse_in_unit(arch::log2_approx(sum.d), params.unit);
      state.normalize();
      Pack8<E>::pack(state.o).store(out);
    }
    if (dim == 0 && params.out.lse != nullptr)
      arch::global_store(words_of<Number>(params.out.lse) + row * params.out.lse_stride_row +
                             head * params.out.lse_stride_head,
                         lse2);
  }
};

} // namespace assay::ASSAY_TARGET
