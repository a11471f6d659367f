// SPDX-License-Identifier: Apache-2.0
// merge_states: n states per row -> one, n fixed or ragged.
#pragma once

#include "kernels/arch/thread.cuh"
#include "kernels/common/merge_rows.cuh"
#include "kernels/merge/merge_params.h"

namespace assay::ASSAY_TARGET {

/// Grid: one thread per (row, head, eight components).
template <class E>
ASSAY_KERNEL(kMergeThreads, 1)
merge_states(const ASSAY_GRID_CONSTANT MergeStatesParams params) {
  using Number = typename arch::Arithmetic<E>::Number;
  const int slices = params.head_dim / 8;
  const int64_t index = int64_t{arch::block_idx_x()} * kMergeThreads + arch::thread_idx();
  const int dim = static_cast<int>(index % slices) * 8;
  const int64_t head = index / slices % params.num_heads, row = index / slices / params.num_heads;
  if (row >= params.num_rows) return;
  int64_t begin = row * params.num_states, end = begin + params.num_states;
  if (params.indptr != nullptr) {
    begin = arch::global_load_readonly(params.indptr + row);
    end = arch::global_load_readonly(params.indptr + row + 1);
  }
  const auto o_of = [&](int i) {
    return static_cast<const E *>(params.in.o) + (begin + i) * params.in.o_stride_row +
           head * params.in.o_stride_head + dim;
  };
  const auto merged = merge_rows(
      static_cast<int>(end - begin), params.scale, params.unit,
      [&](int i) {
        return arch::global_load(words_of<Number>(params.in.lse) +
                                 (begin + i) * params.in.lse_stride_row +
                                 head * params.in.lse_stride_head);
      },
      [&](int i, Number(&o)[8]) { Pack8<E>::load(o_of(i)).unpack(o); });
  E *out = static_cast<E *>(params.out.o) + row * params.out.o_stride_row +
           head * params.out.o_stride_head + dim;
  if (merged.only >= 0)
    Pack8<E>::load(o_of(merged.only)).store(out); // the stored bits, NaN payloads included
  else
    Pack8<E>::pack(merged.o).store(out);
  if (dim == 0 && params.out.lse != nullptr)
    arch::global_store(words_of<Number>(params.out.lse) + row * params.out.lse_stride_row +
                           head * params.out.lse_stride_head,
                       merged.lse);
}

} // namespace assay::ASSAY_TARGET
