// SPDX-License-Identifier: Apache-2.0
// exchange_states: the ranks of a call give each other the states of their rows, and each merges
// those of its heads. As decode over a KV cache that is cut along the sequence needs it.
//
// Each worker (a warp) writes what it has for a peer into the peer's window, releases the flag
// there that has its number, waits for the flags of the same number in its own window, and merges.
// A flag holds the epoch: how often this worker has been through. States of even and of odd epochs
// have places of their own. A peer overwrites those of an epoch two epochs later, once it has the
// flag of the epoch between; this worker releases that one in its next call, and so behind the
// reads of this one. So nobody waits for readers.
#pragma once

#include "kernels/arch/grid_order.cuh"
#include "kernels/arch/peer.cuh"
#include "kernels/arch/shuffle.cuh"
#include "kernels/arch/sync.cuh"
#include "kernels/arch/thread.cuh"
#include "kernels/common/merge_lanes.cuh"
#include "kernels/exchange/exchange_params.h"

namespace assay::ASSAY_TARGET {

/// kRanks: at most so many ranks; all their states of a row are in registers at once.
template <class E, int kRanks>
class Exchange {
public:
  using Number = typename arch::Arithmetic<E>::Number;

  static ASSAY_DEVICE void run(const ExchangeParams &params) {
    const int worker =
        static_cast<int>(arch::block_idx_x()) * kExchangeWarps + static_cast<int>(arch::warp_id());
    arch::wait_for_previous_grid();
    if (worker >= params.workers) return;
    const int lane = static_cast<int>(arch::lane_id());
    uint32_t *const epochs = word_at(params, params.rank, params.window.epoch_at(worker));
    const uint32_t epoch = arch::global_load(epochs) + 1;
    const Exchange self(params, worker, epoch);
    for (int step = 1; step < params.window.num_ranks; ++step)
      self.send((params.rank + step) % params.window.num_ranks);
    // Every lane has sent its part and has read the epoch.
    arch::warp_barrier();
    const bool has_peer = lane < params.window.num_ranks && lane != params.rank;
    bool came = true;
    if (has_peer) {
      arch::store_release(self.flag(lane, params.rank), epoch);
      came = arch::await_at_least(self.flag(params.rank, lane), epoch, params.timeout_ns);
    }
    const uint32_t missing = arch::ballot(!came);
    // What a lane has acquired is now seen by all.
    arch::warp_barrier();
    arch::start_next_grid();
    if (lane == 0) arch::global_store(epochs, epoch);
    if (lane == 0 && missing != 0) arch::atomic_or_relaxed(params.status, missing);
    self.merge(missing != 0);
  }

private:
  ASSAY_DEVICE Exchange(const ExchangeParams &p, int worker, uint32_t epoch)
      : params_(p), worker_(worker), epoch_(epoch), lanes_(1 << p.lanes_log2),
        group_(static_cast<int>(arch::lane_id()) >> p.lanes_log2),
        first_dim_((static_cast<int>(arch::lane_id()) & (lanes_ - 1)) * 8) {}

  static ASSAY_DEVICE uint32_t *word_at(const ExchangeParams &p, int rank, int64_t offset) {
    return reinterpret_cast<uint32_t *>(p.windows[rank] + offset);
  }
  /// The flag that `sender` sets in the window of `rank`.
  ASSAY_DEVICE uint32_t *flag(int rank, int sender) const {
    return word_at(params_, rank, params_.window.flag_at(sender, worker_));
  }
  ASSAY_DEVICE HeadRange heads_of(int rank) const {
    return HeadRange::of(rank, params_.window.num_ranks, params_.num_heads, params_.all_heads != 0);
  }
  /// A state of this worker: its number among them, and where its row is. `head` counts from the
  /// first of the heads in question.
  struct Spot {
    int index, row, head;
  };
  /// Calls f(spot) for the states of this worker among the rows of `heads`. A group of lanes has
  /// every n-th.
  template <class F>
  ASSAY_DEVICE void for_states(HeadRange heads, F f) const {
    const int64_t total = int64_t{params_.num_rows} * heads.count;
    const int64_t begin = int64_t{worker_} * params_.states_per_worker;
    const int groups = 32 >> params_.lanes_log2;
    ASSAY_UNROLL_BY(1)
    for (int i = group_; i < params_.states_per_worker && begin + i < total; i += groups) {
      const auto state = static_cast<uint32_t>(begin + i),
                 count = static_cast<uint32_t>(heads.count);
      f(Spot{i, static_cast<int>(state / count), static_cast<int>(state % count)});
    }
  }

  /// A state in a window: of this worker, written there by `sender`.
  struct Place {
    E *o;
    Number *lse;
  };
  ASSAY_DEVICE Place place(int rank, int sender, int index) const {
    char *const area = params_.windows[rank] + params_.window.area_at(epoch_, sender, worker_);
    E *const o = reinterpret_cast<E *>(area);
    const int64_t elements = int64_t{params_.states_per_worker} * params_.head_dim;
    return {o + int64_t{index} * params_.head_dim,
            reinterpret_cast<Number *>(o + elements) + index};
  }
  /// A state of this rank.
  ASSAY_DEVICE Place own(int row, int head) const {
    const StateTensor &t = params_.in;
    return {static_cast<E *>(t.o) + row * t.o_stride_row + head * t.o_stride_head,
            words_of<Number>(t.lse) + row * t.lse_stride_row + head * t.lse_stride_head};
  }

  ASSAY_DEVICE void send(int peer) const {
    const HeadRange heads = heads_of(peer);
    for_states(heads, [&](Spot at) {
      const Place from = own(at.row, heads.first + at.head);
      const Place to = place(peer, params_.rank, at.index);
      for (int dim = first_dim_; dim < params_.head_dim; dim += 8 * lanes_)
        Pack8<E>::load(from.o + dim).store(to.o + dim);
      if (first_dim_ == 0) arch::global_store(to.lse, arch::global_load(from.lse));
    });
  }

  /// A rank's state of a row that this rank merges.
  ASSAY_DEVICE Place state_of(int rank, HeadRange heads, Spot at) const {
    if (rank == params_.rank) return own(at.row, heads.first + at.head);
    return place(params_.rank, rank, at.index);
  }

  /// Sums the states of all ranks in their order.
  ASSAY_DEVICE void merge(bool late) const {
    const HeadRange heads = heads_of(params_.rank);
    for_states(heads, [&](Spot at) {
      ASSAY_UNROLL_BY(1)
      for (int dim = first_dim_; dim < params_.head_dim; dim += 8 * lanes_)
        if (late)
          store_nothing(at, dim);
        else
          store(heads, at, dim, sum_of(heads, at, dim));
    });
  }

  ASSAY_DEVICE MergedStates<Number> sum_of(HeadRange heads, Spot at, int dim) const {
    Number lse[kRanks];
    Pack8<E> o[kRanks];
    ASSAY_UNROLL
    for (int r = 0; r < kRanks; ++r)
      lse[r] = arch::neg_infinity();
    ASSAY_UNROLL
    for (int r = 0; r < kRanks; ++r)
      if (r < params_.window.num_ranks) {
        const Place from = state_of(r, heads, at);
        lse[r] = arch::global_load(from.lse);
        o[r] = Pack8<E>::load(from.o + dim);
      }
    MergedStates<Number> sum = MergedStates<Number>::none();
    ASSAY_UNROLL
    for (int r = 0; r < kRanks; ++r)
      sum.m = arch::max_num(sum.m, lse[r]);
    ASSAY_UNROLL
    for (int r = 0; r < kRanks; ++r) {
      const Number weight = AttentionState<Number, 1>::weight(lse[r], sum.m, params_.scale);
      if (!(weight == 0.0f)) sum.add(weight, o[r], r);
    }
    return sum;
  }

  ASSAY_DEVICE E *out_o(Spot at, int dim) const {
    const StateTensor &t = params_.out;
    return static_cast<E *>(t.o) + at.row * t.o_stride_row + at.head * t.o_stride_head + dim;
  }
  ASSAY_DEVICE void store_lse(Spot at, int dim, Number lse) const {
    const StateTensor &t = params_.out;
    if (dim == 0 && t.lse != nullptr)
      arch::global_store(
          words_of<Number>(t.lse) + at.row * t.lse_stride_row + at.head * t.lse_stride_head, lse);
  }

  /// Where one state alone has a weight, the result has its bits, also the payloads of NaNs.
  ASSAY_DEVICE void store(HeadRange heads, Spot at, int dim,
                          const MergedStates<Number> &sum) const {
    if (sum.weighted == 1) {
      const Place lone = state_of(sum.last, heads, at);
      Pack8<E>::load(lone.o + dim).store(out_o(at, dim));
      return store_lse(at, dim, arch::global_load(lone.lse));
    }
    SliceOf<Number> state = SliceOf<Number>::from_normalized(sum.m, sum.o);
    state.d = sum.d;
    const bool none = sum.d == 0.0f; // no state has a weight
    const Number lse2 =
        none ? sum.m : Number(sum.m + lse_in_unit(arch::log2_approx(sum.d), params_.unit));
    state.normalize();
    Pack8<E>::pack(state.o).store(out_o(at, dim));
    store_lse(at, dim, lse2);
  }

  /// Of a row whose states did not all come.
  ASSAY_DEVICE void store_nothing(Spot at, int dim) const {
    const Number nothing = Number(arch::neg_infinity()) - Number(arch::neg_infinity());
    Number o[8];
    ASSAY_UNROLL
    for (int k = 0; k < 8; ++k)
      o[k] = nothing;
    Pack8<E>::pack(o).store(out_o(at, dim));
    store_lse(at, dim, nothing);
  }

  const ExchangeParams &params_;
  const int worker_;
  const uint32_t epoch_;
  const int lanes_, group_, first_dim_; // of a state; of this lane: which state, which components
};

/// Grid: a warp a worker.
template <class E, int kRanks>
ASSAY_KERNEL(kExchangeThreads, 4)
exchange_states(const ASSAY_GRID_CONSTANT ExchangeParams params) {
  Exchange<E, kRanks>::run(params);
}

} // namespace assay::ASSAY_TARGET
