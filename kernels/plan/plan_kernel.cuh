// SPDX-License-Identifier: Apache-2.0
// The device planner: seq_lens -> tile_indptr and worker_request, one block.
#pragma once

#include "kernels/arch/load_store.cuh"
#include "kernels/arch/shared_storage.cuh"
#include "kernels/arch/shuffle.cuh"
#include "kernels/arch/sync.cuh"
#include "kernels/arch/thread.cuh"
#include "kernels/plan/split_plan.h"

namespace assay::ASSAY_TARGET {

/// Reads plan arrays through the checked load.
struct PlanLoad {
  ASSAY_DEVICE int32_t operator()(const int32_t *p) const { return arch::global_load(p); }
};

struct PlanParams {
  SplitPlanShape shape; // balanced
  const int32_t *seq_lens;
  int32_t *tile_indptr;    // [batch + 1]
  int32_t *worker_request; // [workers]
};

inline constexpr int kPlanThreads = 256;

struct PlanSharedStorage {
  int32_t warp_sum[kPlanThreads / arch::kWarpSize];
};

/// Inclusive prefix sum over the warp.
ASSAY_DEVICE int32_t warp_prefix_sum(int32_t v) {
  ASSAY_UNROLL
  for (uint32_t delta = 1; delta < arch::kWarpSize; delta *= 2) {
    const int32_t below = arch::shfl_up(v, delta);
    if (arch::lane_id() >= delta) v += below;
  }
  return v;
}

/// Integers only, so the host planner (host_plan.h) computes identical bytes.
template <int kThreads>
ASSAY_KERNEL(kThreads, 1)
plan_kernel(const ASSAY_GRID_CONSTANT PlanParams params) {
  PlanSharedStorage &shared = arch::shared_storage<PlanSharedStorage>();
  const SplitPlanShape &s = params.shape;
  const int thread = arch::thread_idx(), warp = arch::warp_id();
  constexpr int kWarps = kThreads / 32;
  // 1. Prefix sum of tiles, kThreads requests at a time.
  int32_t carry = 0;
  if (thread == 0) arch::global_store(params.tile_indptr, 0);
  for (int first = 0; first < s.batch; first += kThreads) {
    const int request = first + thread;
    int32_t tiles = 0;
    if (request < s.batch) tiles = tiles_of(arch::global_load(params.seq_lens + request), s.tile);
    int32_t sum = warp_prefix_sum(tiles);
    if (arch::lane_id() == 31) arch::shared_store(&shared.warp_sum[warp], sum);
    arch::block_barrier();
    int32_t block_sum = 0;
    for (int w = 0; w < kWarps; ++w) {
      const int32_t v = arch::shared_load(&shared.warp_sum[w]);
      if (w < warp) sum += v;
      block_sum += v;
    }
    if (request < s.batch) arch::global_store(params.tile_indptr + request + 1, carry + sum);
    carry += block_sum;
    // warp_sum is rewritten in the next round; the last barrier also publishes tile_indptr.
    arch::block_barrier();
  }
  // 2. Where each worker's range starts.
  const int64_t total = int64_t{carry} * s.units;
  const int64_t active = active_workers(s, total);
  for (int w = thread; w < s.workers; w += kThreads) {
    int32_t request = 0;
    if (w < active)
      request = request_of(params.tile_indptr, s.batch, s.units, worker_begin(w, active, total),
                           PlanLoad{});
    arch::global_store(params.worker_request + w, request);
  }
}

} // namespace assay::ASSAY_TARGET
