// SPDX-License-Identifier: Apache-2.0
// merge_states: n states per row -> one, n fixed or ragged.
#pragma once

#include "kernels/arch/shared_storage.cuh"
#include "kernels/arch/sync.cuh"
#include "kernels/arch/thread.cuh"
#include "kernels/common/merge_lanes.cuh"
#include "kernels/merge/merge_params.h"
#include "kernels/merge/merge_policy.h"
#include "kernels/merge/row_head.cuh"

namespace assay::ASSAY_TARGET {

/// kLanes lanes, each with eight components at a time, are a worker: it sums a contiguous range of
/// the states of a (row, head). Where states are many, several workers of a block share them and
/// meet in shared memory; how many depends on num_states alone, so the order of a row's sum does
/// not depend on the rows beside it.
template <class E, int kLanes>
class MergeStatesBlock {
public:
  using Number = typename arch::Arithmetic<E>::Number;
  static constexpr int kWorkers = kMergeStatesThreads / kLanes; // of a block
  static constexpr int kBatch = sizeof(E) == 2 ? 8 : 4;         // 32 registers of o

  static constexpr int kMinBlocks = sizeof(E) == 2 && kLanes > 8 ? 3 : 2; // what registers hold

  struct SharedStorage {
    Number o[kWorkers][kLanes * 8], m[kWorkers], d[kWorkers];
    int32_t weighted[kWorkers], last[kWorkers];
  };

  static ASSAY_DEVICE void run(const MergeStatesParams &params) {
    const int thread = static_cast<int>(arch::thread_idx());
    const int worker = thread / kLanes, share = worker & (params.workers - 1);
    const RowHead at = RowHead::of(int64_t{arch::block_idx_x()} * (kWorkers / params.workers) +
                                       worker / params.workers,
                                   params.num_heads);
    Place place{params, at.row, at.head, 0, 0};
    place.exists = at.row < params.num_rows;
    if (place.exists) {
      place.begin = at.row * params.num_states;
      place.count = params.num_states;
      if (params.indptr != nullptr) {
        place.begin = arch::global_load_readonly(params.indptr + at.row);
        place.count =
            static_cast<int>(arch::global_load_readonly(params.indptr + at.row + 1) - place.begin);
      }
    }
    const int most = (place.count + params.workers - 1) / params.workers; // of a worker
    const int first = most * share < place.count ? most * share : place.count;
    const int count = most < place.count - first ? most : place.count - first;
    ASSAY_UNROLL_BY(1)
    for (int base = 0; base < params.head_dim; base += 8 * kLanes) {
      const int dim = base + thread % kLanes * 8;
      auto sum = sum_of(params, place, first, count, dim);
      if (params.workers > 1) {
        if (base > 0) arch::block_barrier();
        publish(sum, worker, thread % kLanes);
        arch::block_barrier();
        if (share != 0) continue;
        sum = sum_of_workers(params, worker, thread % kLanes);
      }
      store(params, place, dim, sum);
    }
  }

private:
  struct Place {
    const MergeStatesParams &params;
    int64_t row, head, begin; // begin: its first state
    int count;
    bool exists = false;
    ASSAY_DEVICE const E *o(int64_t state, int dim) const {
      return static_cast<const E *>(params.in.o) + (begin + state) * params.in.o_stride_row +
             head * params.in.o_stride_head + dim;
    }
    ASSAY_DEVICE Number lse(int64_t state) const {
      return arch::global_load(words_of<Number>(params.in.lse) +
                               (begin + state) * params.in.lse_stride_row +
                               head * params.in.lse_stride_head);
    }
  };

  using Sum = MergedStates<Number>;

  static ASSAY_DEVICE Sum sum_of(const MergeStatesParams &params, const Place &place, int first,
                                 int count, int dim) {
    Sum sum = merge_by_lanes<kLanes, Number, kBatch>(
        count, params.scale, [&](int i) { return place.lse(first + i); },
        // A lane past head_dim loads what it does not use.
        [&](int i) { return Pack8<E>::load(place.o(first + i, dim < params.head_dim ? dim : 0)); },
        [](int) { return true; });
    sum.last += first;
    return sum;
  }

  static ASSAY_DEVICE void publish(const Sum &sum, int worker, int lane) {
    SharedStorage &shared = arch::shared_storage<SharedStorage>();
    ASSAY_UNROLL
    for (int k = 0; k < 8; ++k)
      arch::shared_store(&shared.o[worker][k * kLanes + lane], sum.o[k]);
    if (lane != 0) return;
    arch::shared_store(&shared.m[worker], sum.m);
    arch::shared_store(&shared.d[worker], sum.d);
    arch::shared_store(&shared.weighted[worker], sum.weighted);
    arch::shared_store(&shared.last[worker], sum.last);
  }

  static ASSAY_DEVICE Sum sum_of_workers(const MergeStatesParams &params, int first, int lane) {
    SharedStorage &shared = arch::shared_storage<SharedStorage>();
    Sum sum;
    sum.m = arch::neg_infinity();
    for (int w = first; w < first + params.workers; ++w)
      sum.m = arch::max_num(sum.m, arch::shared_load(&shared.m[w]));
    sum.d = 0.0f;
    sum.weighted = 0;
    ASSAY_UNROLL
    for (int k = 0; k < 8; ++k)
      sum.o[k] = 0.0f;
    for (int w = first; w < first + params.workers; ++w) {
      const Number weight =
          AttentionState<Number, 1>::weight(arch::shared_load(&shared.m[w]), sum.m, params.scale);
      if (weight == 0.0f) continue;
      sum.weighted += arch::shared_load(&shared.weighted[w]);
      sum.last = arch::shared_load(&shared.last[w]);
      sum.d = arch::fma_rn(weight, arch::shared_load(&shared.d[w]), sum.d);
      ASSAY_UNROLL
      for (int k = 0; k < 8; ++k)
        sum.o[k] =
            arch::fma_rn(weight, arch::shared_load(&shared.o[w][k * kLanes + lane]), sum.o[k]);
    }
    return sum;
  }

  static ASSAY_DEVICE void store(const MergeStatesParams &params, const Place &place, int dim,
                                 const Sum &sum) {
    if (!place.exists || dim >= params.head_dim) return;
    E *out = static_cast<E *>(params.out.o) + place.row * params.out.o_stride_row +
             place.head * params.out.o_stride_head + dim;
    using State = SliceOf<Number>;
    State state = State::from_normalized(sum.m, sum.o);
    state.d = sum.d;
    Number lse = sum.m; // of no state
    if (sum.weighted == 1) {
      lse = place.lse(sum.last);
      Pack8<E>::load(place.o(sum.last, dim)).store(out); // the stored bits, NaN payloads included
    } else {
      if (!(sum.d == 0.0f)) lse = sum.m + lse_in_unit(arch::log2_approx(sum.d), params.unit);
      state.normalize();
      Pack8<E>::pack(state.o).store(out);
    }
    if (dim == 0 && params.out.lse != nullptr)
      arch::global_store(words_of<Number>(params.out.lse) + place.row * params.out.lse_stride_row +
                             place.head * params.out.lse_stride_head,
                         lse);
  }
};

/// Grid: num_rows * num_heads (row, head)s of `workers` workers each.
template <class E, int kLanes>
ASSAY_KERNEL(kMergeStatesThreads, (MergeStatesBlock<E, kLanes>::kMinBlocks))
merge_states(const ASSAY_GRID_CONSTANT MergeStatesParams params) {
  MergeStatesBlock<E, kLanes>::run(params);
}

} // namespace assay::ASSAY_TARGET
