// SPDX-License-Identifier: Apache-2.0
// merge_states: n states per row -> one, n fixed or ragged.
#pragma once

#include "kernels/arch/shared_storage.cuh"
#include "kernels/arch/sync.cuh"
#include "kernels/arch/thread.cuh"
#include "kernels/arch/wgmma.cuh"
#include "kernels/merge/merge_policy.h"
#include "kernels/merge/merge_row.cuh"

namespace assay::ASSAY_TARGET {

/// kLanes lanes, each with eight components at a time, are a worker: it sums a contiguous range of
/// the states of a (row, head). Where states are many, several workers of a block share them and
/// meet in shared memory, by halves. How many take part in a row depends on its own count alone,
/// and the others of the launch add nothing: the order of a row's sum does not depend on the rows
/// beside it.
template <class E, int kLanes, int kThreads>
class MergeStatesBlock {
public:
  using Number = typename arch::Arithmetic<E>::Number;
  static constexpr int kWorkers = kThreads / kLanes; // of a block
  static constexpr bool kMany = kThreads == kManyMergeStatesThreads;
  static constexpr int kBatch = sizeof(E) == 2 ? 8 : 4; // 32 registers of o
  /// What registers hold without spills; the compiler needs more of them for sm_80.
  static constexpr bool kThree = sizeof(E) == 2 && kLanes > 8 && arch::kWarpgroups;
  static constexpr int kMinBlocks = kMany ? 1 : kThree ? 3 : 2;

  struct SharedStorage {
    Number o[kWorkers][kLanes * 8], m[kWorkers], d[kWorkers];
    int32_t weighted[kWorkers], last[kWorkers];
  };

  static ASSAY_DEVICE void run(const MergeStatesParams &params) {
    const int thread = static_cast<int>(arch::thread_idx()), lane = thread % kLanes;
    const int worker = thread / kLanes, share = worker & (params.workers - 1);
    const MergeRow<E> row(params, int64_t{arch::block_idx_x()} * (kWorkers / params.workers) +
                                      worker / params.workers);
    // More than params.workers only where a row has more states than the caller said.
    const int wanted = merge_workers(row.count, kLanes);
    const int parts = wanted < params.workers ? wanted : params.workers;
    const int most = (row.count + parts - 1) / parts; // of a worker
    const int first = most * share < row.count ? most * share : row.count;
    const int count = most < row.count - first ? most : row.count - first;
    ASSAY_UNROLL_BY(1)
    for (int base = 0; base < params.head_dim; base += 8 * kLanes) {
      const int dim = base + lane * 8;
      Sum sum = merge_by_lanes<kLanes, Number, kBatch>(
          count, params.scale, [&](int i) { return row.lse(first + i); },
          [&](int i) { return row.o(first + i, dim); }, [](int) { return true; });
      sum.last += first;
      if (params.workers > 1) {
        if (base > 0) arch::block_barrier();
        add_workers(params, sum, worker, share, lane);
        if (share != 0) continue;
      }
      row.store(dim, sum);
    }
  }

private:
  using Sum = MergedStates<Number>;

  static ASSAY_DEVICE void publish(SharedStorage &shared, const Sum &sum, int worker, int lane) {
    ASSAY_UNROLL
    for (int k = 0; k < 8; ++k)
      arch::shared_store(&shared.o[worker][k * kLanes + lane], sum.o[k]);
    if (lane != 0) return;
    arch::shared_store(&shared.m[worker], sum.m);
    arch::shared_store(&shared.d[worker], sum.d);
    arch::shared_store(&shared.weighted[worker], sum.weighted);
    arch::shared_store(&shared.last[worker], sum.last);
  }

  static ASSAY_DEVICE void add(const SharedStorage &shared, Sum &sum, int worker, int lane,
                               float scale) {
    const int weighted = arch::shared_load(&shared.weighted[worker]);
    if (weighted == 0) return;
    const Number other = arch::shared_load(&shared.m[worker]), m = arch::max_num(sum.m, other);
    const Number own_weight = AttentionState<Number, 1>::weight(sum.m, m, scale);
    const Number weight = AttentionState<Number, 1>::weight(other, m, scale);
    sum.m = m;
    sum.d = arch::fma_rn(weight, arch::shared_load(&shared.d[worker]), Number(sum.d * own_weight));
    ASSAY_UNROLL
    for (int k = 0; k < 8; ++k)
      sum.o[k] = arch::fma_rn(weight, arch::shared_load(&shared.o[worker][k * kLanes + lane]),
                              Number(sum.o[k] * own_weight));
    sum.weighted += weighted;
    sum.last = arch::shared_load(&shared.last[worker]);
  }

  /// The sum of a row's workers ends in its first one. Those beyond its parts are empty, so the
  /// order is the same for every params.workers.
  static ASSAY_DEVICE void add_workers(const MergeStatesParams &params, Sum &sum, int worker,
                                       int share, int lane) {
    SharedStorage &shared = arch::shared_storage<SharedStorage>();
    ASSAY_UNROLL_BY(1)
    for (int half = params.workers / 2; half > 0; half /= 2) {
      if (share >= half && share < 2 * half) publish(shared, sum, worker, lane);
      arch::block_barrier();
      if (share < half) add(shared, sum, worker + half, lane, params.scale);
    }
  }
};

/// Grid: num_rows * num_heads (row, head)s of `workers` workers each.
template <class E, int kLanes, int kThreads>
ASSAY_KERNEL(kThreads, (MergeStatesBlock<E, kLanes, kThreads>::kMinBlocks))
merge_states(const ASSAY_GRID_CONSTANT MergeStatesParams params) {
  MergeStatesBlock<E, kLanes, kThreads>::run(params);
}

} // namespace assay::ASSAY_TARGET
