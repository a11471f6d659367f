// SPDX-License-Identifier: Apache-2.0
// merge_states where no row has more than kMaxFewStates states: every thread weighs all of them.
#pragma once

#include "kernels/arch/thread.cuh"
#include "kernels/merge/merge_policy.h"
#include "kernels/merge/merge_row.cuh"

namespace assay::ASSAY_TARGET {

/// The sum of the states of a row. Order and arithmetic are those of merge_by_lanes(), so that the
/// bits of a row do not depend on the kernel that the rows beside it ask for.
template <int kStates, class E>
ASSAY_DEVICE auto merge_few(const MergeRow<E> &row, int dim) {
  using Number = typename MergeRow<E>::Number;
  Number lse[kStates];
  Pack8<E> o[kStates];
  ASSAY_UNROLL
  for (int i = 0; i < kStates; ++i)
    lse[i] = i < row.count ? row.lse(i) : Number(arch::neg_infinity());
  ASSAY_UNROLL
  for (int i = 0; i < kStates; ++i)
    if (i < row.count) o[i] = row.o(i, dim);
  MergedStates<Number> sum = MergedStates<Number>::none();
  ASSAY_UNROLL
  for (int i = 0; i < kStates; ++i)
    sum.m = arch::max_num(sum.m, lse[i]);
  ASSAY_UNROLL
  for (int i = 0; i < kStates; ++i) {
    const Number weight = AttentionState<Number, 1>::weight(lse[i], sum.m, row.params.scale);
    if (!(weight == 0.0f)) sum.add(weight, o[i], i);
  }
  return sum;
}

/// Grid: 2^lanes_log2 lanes for each of num_rows * num_heads (row, head)s. A lane has eight
/// components at a time.
template <class E, int kStates>
ASSAY_KERNEL(kFewStatesThreads, (sizeof(E) == 2 ? 4 : 3))
merge_few_states(const ASSAY_GRID_CONSTANT MergeStatesParams params) {
  const int lanes = 1 << params.lanes_log2, thread = static_cast<int>(arch::thread_idx());
  const MergeRow<E> row(params,
                        int64_t{arch::block_idx_x()} * (kFewStatesThreads >> params.lanes_log2) +
                            (thread >> params.lanes_log2));
  ASSAY_UNROLL_BY(1)
  for (int dim = (thread & (lanes - 1)) * 8; dim < params.head_dim; dim += 8 * lanes)
    row.store(dim, merge_few<kStates>(row, dim));
}

} // namespace assay::ASSAY_TARGET
