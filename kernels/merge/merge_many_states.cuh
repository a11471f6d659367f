// SPDX-License-Identifier: Apache-2.0
// merge_states where a row may have many states: a block has one row, and its workers share the
// states.
#pragma once

#include "kernels/arch/shared_storage.cuh"
#include "kernels/arch/sync.cuh"
#include "kernels/arch/thread.cuh"
#include "kernels/merge/merge_policy.h"
#include "kernels/merge/merge_row.cuh"

namespace assay::ASSAY_TARGET {

/// A worker is kLanes lanes, which have eight components each at a time. It sums a contiguous range
/// of the states of the (row, head), relative to the largest LSE of all of them. The sums are then
/// added in the order of the workers, first within a warp, then over the warps. How many workers
/// take part depends on the number of states of the row alone; other workers of the block add
/// nothing. So the order of the sum of a row does not depend on the rows beside it.
template <class E, int kLanes>
class MergeManyStates {
public:
  using Number = typename arch::Arithmetic<E>::Number;
  static constexpr int kBatch = sizeof(E) == 2 ? 4 : 2; // 16 registers of o
  static constexpr int kThreads =
      kLanes * kMaxWorkers < kManyStatesThreads ? kLanes * kMaxWorkers : kManyStatesThreads;
  static constexpr int kWarps = kThreads / 32;

  struct SharedStorage {
    Number o[kWarps][kLanes * 8], d[kWarps], largest[kWarps];
    int32_t weighted[kWarps], last[kWarps];
  };

  static ASSAY_DEVICE void run(const MergeStatesParams &params) {
    const int thread = static_cast<int>(arch::thread_idx()), lane = thread % kLanes;
    const int worker = thread / kLanes;
    const MergeRow<E> row(params, arch::block_idx_x());
    // `wanted` is above params.workers only where a row has more states than the caller said.
    const int wanted = merge_workers(row.count, kLanes);
    const int parts = wanted < params.workers ? wanted : params.workers;
    const int most = (row.count + parts - 1) / parts; // the most states of a worker
    const int first = most * worker < row.count ? most * worker : row.count;
    const int count = most < row.count - first ? most : row.count - first;
    ASSAY_UNROLL_BY(1)
    for (int base = 0; base < params.head_dim; base += 8 * kLanes) {
      const int dim = base + lane * 8;
      Sum sum = merge_by_lanes<kLanes, Number, kBatch>(
          count, params.scale, [&](int i) { return row.lse(first + i); },
          [&](int i) { return row.o(first + i, dim); }, [](int) { return true; },
          [&](Number m) { return largest_of_block(params, m); });
      sum.last += first;
      add_workers_of_warp(sum);
      publish(sum, lane);
      arch::block_barrier();
      if (thread < kLanes) {
        add_warps(params, sum, lane);
        row.store(dim, sum);
      }
    }
  }

private:
  using Sum = MergedStates<Number>;

  static ASSAY_DEVICE SharedStorage &shared() { return arch::shared_storage<SharedStorage>(); }
  static ASSAY_DEVICE int warps(const MergeStatesParams &params) {
    return params.workers * kLanes / 32;
  }

  /// The largest LSE of the row, with the same bits in all threads: equal numbers may have other
  /// bits, and so all threads take that of lane 0.
  static ASSAY_DEVICE Number largest_of_block(const MergeStatesParams &params, Number m) {
    ASSAY_UNROLL
    for (int mask = kLanes; mask < 32; mask *= 2)
      m = arch::max_num(m, arch::shfl_xor(m, mask));
    const int lane = static_cast<int>(arch::lane_id());
    if (lane == 0) arch::shared_store(&shared().largest[arch::warp_id()], m);
    arch::block_barrier();
    m = arch::shared_load(&shared().largest[lane < warps(params) ? lane : 0]);
    ASSAY_UNROLL
    for (int mask = 1; mask < 32; mask *= 2)
      m = arch::max_num(m, arch::shfl_xor(m, mask));
    return arch::shfl_idx(m, 0);
  }

  /// Adds the sum of later states.
  static ASSAY_DEVICE void add(Sum &sum, int weighted, int last, Number d, const Number (&o)[8]) {
    if (weighted == 0) return;
    const bool alone = sum.weighted == 0;
    sum.d = alone ? d : Number(sum.d + d);
    ASSAY_UNROLL
    for (int k = 0; k < 8; ++k)
      sum.o[k] = alone ? o[k] : Number(sum.o[k] + o[k]);
    sum.weighted += weighted;
    sum.last = last;
  }

  /// Adds up the sums of the workers of a warp, in the lanes of its first worker.
  static ASSAY_DEVICE void add_workers_of_warp(Sum &sum) {
    ASSAY_UNROLL
    for (int distance = kLanes; distance < 32; distance *= 2) {
      const int weighted = arch::shfl_xor(sum.weighted, distance);
      const int last = arch::shfl_xor(sum.last, distance);
      const Number d = arch::shfl_xor(sum.d, distance);
      Number o[8];
      ASSAY_UNROLL
      for (int k = 0; k < 8; ++k)
        o[k] = arch::shfl_xor(sum.o[k], distance);
      add(sum, weighted, last, d, o);
    }
  }

  static ASSAY_DEVICE void publish(const Sum &sum, int lane) {
    const int warp = static_cast<int>(arch::warp_id());
    if (warp == 0 || static_cast<int>(arch::lane_id()) >= kLanes) return;
    ASSAY_UNROLL
    for (int k = 0; k < 8; ++k)
      arch::shared_store(&shared().o[warp][k * kLanes + lane], sum.o[k]);
    if (lane != 0) return;
    arch::shared_store(&shared().d[warp], sum.d);
    arch::shared_store(&shared().weighted[warp], sum.weighted);
    arch::shared_store(&shared().last[warp], sum.last);
  }

  static ASSAY_DEVICE void add_warps(const MergeStatesParams &params, Sum &sum, int lane) {
    ASSAY_UNROLL_BY(4)
    for (int warp = 1; warp < warps(params); ++warp) {
      Number o[8];
      ASSAY_UNROLL
      for (int k = 0; k < 8; ++k)
        o[k] = arch::shared_load(&shared().o[warp][k * kLanes + lane]);
      add(sum, arch::shared_load(&shared().weighted[warp]), arch::shared_load(&shared().last[warp]),
          arch::shared_load(&shared().d[warp]), o);
    }
  }
};

/// Grid: a block per (row, head), of params.workers * kLanes threads.
template <class E, int kLanes>
ASSAY_KERNEL((MergeManyStates<E, kLanes>::kThreads), 1)
merge_many_states(const ASSAY_GRID_CONSTANT MergeStatesParams params) {
  MergeManyStates<E, kLanes>::run(params);
}

} // namespace assay::ASSAY_TARGET
