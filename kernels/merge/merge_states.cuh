// SPDX-License-Identifier: Apache-2.0
// merge_states: merges the states of a row to one. Rows have equally many states, or as many as
// indptr says, and few enough for one worker.
#pragma once

#include "kernels/merge/merge_policy.h"
#include "kernels/merge/merge_row.cuh"

namespace assay::ASSAY_TARGET {

/// How many o a lane has in flight: they take 32 registers.
template <class E>
inline constexpr int kMergeBatch = sizeof(E) == 2 ? 8 : 4;

/// Grid: kLanes lanes for each of num_rows * num_heads (row, head)s. A lane has eight components at
/// a time.
template <class E, int kLanes>
ASSAY_KERNEL(kMergeStatesThreads, 5)
merge_states(const ASSAY_GRID_CONSTANT MergeStatesParams params) {
  using Number = typename arch::Arithmetic<E>::Number;
  const int thread = static_cast<int>(arch::thread_idx());
  const MergeRow<E> row(params, int64_t{arch::block_idx_x()} * (kMergeStatesThreads / kLanes) +
                                    thread / kLanes);
  ASSAY_UNROLL_BY(1)
  for (int base = 0; base < params.head_dim; base += 8 * kLanes) {
    const int dim = base + thread % kLanes * 8;
    row.store(dim, merge_by_lanes<kLanes, Number, kMergeBatch<E>>(
                       row.count, params.scale, [&](int i) { return row.lse(i); },
                       [&](int i) { return row.o(i, dim); }, [](int) { return true; },
                       [](Number m) { return m; }));
  }
}

} // namespace assay::ASSAY_TARGET
