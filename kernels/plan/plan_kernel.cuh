// SPDX-License-Identifier: Apache-2.0
// The device planner: one block makes a plan buffer of seq_lens.
#pragma once

#include "kernels/arch/load_store.cuh"
#include "kernels/arch/shared_storage.cuh"
#include "kernels/arch/shuffle.cuh"
#include "kernels/arch/sync.cuh"
#include "kernels/arch/thread.cuh"
#include "kernels/common/params.h"
#include "kernels/plan/plan_build.h"

namespace assay::ASSAY_TARGET {

/// Reads plan arrays through the checked load.
struct PlanLoad {
  ASSAY_DEVICE int32_t operator()(const int32_t *p) const { return arch::global_load(p); }
};
/// Reads those that lie in shared memory.
struct StagedLoad {
  ASSAY_DEVICE int32_t operator()(const int32_t *p) const { return arch::shared_load(p); }
};

struct PlanParams {
  PlanInput input;
  int32_t *line_indptr, *order; // the arrays of input, to write
  WorkerItems *workers;
  WorkItem *request_items;
  uint32_t *counters;

  ASSAY_FIELDS(input.shape.batch, input.shape.head_tiles, input.shape.splits, input.shape.workers,
               input.shape.tile, input.shape.span, input.seq_lens, input.covered, line_indptr,
               order, workers, request_items, counters)
};

/// Parameters for a plan buffer at `plan`, which is 16-byte aligned and has
/// plan_layout(shape).bytes. PlanInput tells of `covered`.
inline PlanParams plan_params(const SplitPlanShape &shape, const int32_t *seq_lens, void *plan,
                              const int32_t *covered = nullptr) {
  const PlanLayout layout = plan_layout(shape);
  char *base = static_cast<char *>(plan);
  auto *line_indptr = reinterpret_cast<int32_t *>(base + layout.line_indptr);
  auto *order = reinterpret_cast<int32_t *>(base + layout.order);
  return {{shape, seq_lens, line_indptr, order, covered},
          line_indptr,
          order,
          reinterpret_cast<WorkerItems *>(base + layout.workers),
          reinterpret_cast<WorkItem *>(base + layout.request_items),
          reinterpret_cast<uint32_t *>(base + layout.counters)};
}

inline constexpr int kPlanThreads = 256;
inline constexpr int kMaxPlanWarps = 32; // the planner of trees has blocks of so many

/// The arrays of PlanInput for up to so many requests lie in shared memory. A worker looks a
/// request up in 3 * log2(batch) dependent loads, each of 250 cycles from L2 and 30 from here.
inline constexpr int kStagedRequests = 2048;

struct PlanSharedStorage {
  int32_t seq_lens[kStagedRequests], covered[kStagedRequests];
  int32_t line_indptr[kStagedRequests + 1], order[kStagedRequests];
  int32_t length[kMaxPlanWarps];    // on the line, of the requests of a warp
  int32_t with_keys[kMaxPlanWarps]; // how many requests of a warp have keys
  int32_t workers[kShares];         // that all requests need with a share
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

/// Stores a record as 16-byte vectors.
template <class T>
ASSAY_DEVICE void store_record(T *p, const T &value) {
  static_assert(sizeof(T) % sizeof(arch::Vec4) == 0);
  union {
    T record;
    arch::Vec4 vectors[sizeof(T) / sizeof(arch::Vec4)];
  } u = {value};
  ASSAY_UNROLL
  for (unsigned i = 0; i < sizeof(T) / sizeof(arch::Vec4); ++i)
    arch::global_store(reinterpret_cast<arch::Vec4 *>(p) + i, u.vectors[i]);
}

/// The sum of f(tiles of a request) over all requests, for every lane.
template <class Load, class F>
ASSAY_DEVICE int32_t warp_sum(const PlanInput &in, Load load, F f) {
  int32_t sum = 0;
  for (int r = arch::lane_id(); r < in.shape.batch; r += arch::kWarpSize)
    sum += f(dealt_tiles(in, r, load));
  return arch::shfl_idx(warp_prefix_sum(sum), arch::kWarpSize - 1);
}

/// The smallest share with which there are enough whole workers, or 0. Each warp tries other
/// shares.
template <int kThreads, class Load>
ASSAY_DEVICE int64_t share_of_whole_workers(const PlanInput &in, Load load) {
  PlanSharedStorage &shared = arch::shared_storage<PlanSharedStorage>();
  const SplitPlanShape &s = in.shape;
  if (s.batch > s.workers) return 0;
  const int64_t total = warp_sum(in, load, [](int32_t tiles) { return tiles; });
  for (int i = arch::warp_id(); i < kShares && may_have_whole_workers(s, total, i);
       i += kThreads / arch::kWarpSize) {
    const int64_t share = share_of_line(total, i);
    const int32_t workers =
        warp_sum(in, load, [&](int32_t tiles) { return own_workers(s, share, tiles); });
    if (arch::lane_id() == 0) arch::shared_store(&shared.workers[i], workers);
  }
  arch::block_barrier();
  for (int i = 0; i < kShares && may_have_whole_workers(s, total, i); ++i)
    if (arch::shared_load(&shared.workers[i]) <= s.workers) return share_of_line(total, i);
  return 0;
}

/// Writes line_indptr and order, kThreads requests at a time.
template <int kThreads, class Load>
ASSAY_DEVICE void write_line(const PlanParams &params, const PlanInput &in, Load load) {
  PlanSharedStorage &shared = arch::shared_storage<PlanSharedStorage>();
  const SplitPlanShape &s = in.shape;
  const int thread = arch::thread_idx(), warp = arch::warp_id();
  const auto store = [](int32_t *array, int32_t *staged, int index, int32_t value) {
    arch::global_store(array + index, value);
    if constexpr (std::is_same_v<Load, StagedLoad>) arch::shared_store(staged + index, value);
  };
  const int64_t share = share_of_whole_workers<kThreads>(in, load);
  int32_t x = 0, before = 0; // length of the line and requests with keys so far
  for (int first = 0; first < s.batch; first += kThreads) {
    const int request = first + thread;
    const int32_t tiles = request < s.batch ? dealt_tiles(in, request, load) : 0;
    const int32_t length = line_length(s, share, tiles), with_keys = tiles > 0;
    const int32_t length_sum = warp_prefix_sum(length), keys_sum = warp_prefix_sum(with_keys);
    if (arch::lane_id() == 31) {
      arch::shared_store(&shared.length[warp], length_sum);
      arch::shared_store(&shared.with_keys[warp], keys_sum);
    }
    arch::block_barrier();
    int32_t begin = x + length_sum - length, own_before = before + keys_sum - with_keys;
    for (int w = 0; w < kThreads / 32; ++w) {
      const int32_t length_of_warp = arch::shared_load(&shared.length[w]);
      const int32_t keys_of_warp = arch::shared_load(&shared.with_keys[w]);
      x += length_of_warp;
      before += keys_of_warp;
      if (w < warp) {
        begin += length_of_warp;
        own_before += keys_of_warp;
      }
    }
    if (request < s.batch) {
      const int32_t index = line_index_of(s, request, own_before, tiles > 0);
      store(params.order, shared.order, index, request);
      if (tiles > 0) store(params.line_indptr, shared.line_indptr, index, begin);
    }
    arch::block_barrier(); // the sums are rewritten in the next round
  }
  for (int index = before + thread; index <= s.batch; index += kThreads)
    store(params.line_indptr, shared.line_indptr, index, x);
  arch::block_barrier();
}

/// `load` reads the arrays of `in`, which are those of `params` or their copies.
template <int kThreads, class Load>
ASSAY_DEVICE void write_plan(const PlanParams &params, const PlanInput &in, Load load) {
  const SplitPlanShape &s = in.shape;
  const int thread = arch::thread_idx();
  write_line<kThreads>(params, in, load);
  for (int64_t i = thread; i < int64_t{s.batch} * s.head_tiles; i += kThreads)
    arch::global_store(params.counters + i, 0u);
  if (s.splits == 0)
    for (int r = thread; r < s.batch; r += kThreads)
      store_record(params.request_items + r, request_item(in, r, load));
  // The last threads begin, as the first ones have had requests.
  for (int w = kThreads - 1 - thread; w < s.workers; w += kThreads)
    store_record(params.workers + w, worker_items(in, w, load));
}

/// Writes the plan of at most kStagedRequests. What stood in shared memory is no longer needed.
template <int kThreads>
ASSAY_DEVICE void write_staged_plan(const PlanParams &params) {
  PlanSharedStorage &shared = arch::shared_storage<PlanSharedStorage>();
  PlanInput in = params.input;
  for (int r = arch::thread_idx(); r < in.shape.batch; r += kThreads) {
    arch::shared_store(&shared.seq_lens[r], arch::global_load(in.seq_lens + r));
    if (in.covered != nullptr)
      arch::shared_store(&shared.covered[r], arch::global_load(in.covered + r));
  }
  arch::block_barrier();
  in.seq_lens = shared.seq_lens;
  in.line_indptr = shared.line_indptr;
  in.order = shared.order;
  if (in.covered != nullptr) in.covered = shared.covered;
  write_plan<kThreads>(params, in, StagedLoad{});
}

/// Computes with integers alone, so that the host planner (host_plan.h) computes identical bytes.
template <int kThreads>
ASSAY_KERNEL(kThreads, 1)
plan_kernel(const ASSAY_GRID_CONSTANT PlanParams params) {
  if (params.input.shape.batch <= kStagedRequests)
    write_staged_plan<kThreads>(params);
  else
    write_plan<kThreads>(params, params.input, PlanLoad{});
}

} // namespace assay::ASSAY_TARGET
