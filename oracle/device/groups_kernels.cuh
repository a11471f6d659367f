// SPDX-License-Identifier: Apache-2.0
// Internal: the steps over pairs that share keys as kernels: each step of a large call, and all
// steps of a small one.
#pragma once

#include "oracle/device/groups_along.cuh"
#include "oracle/device/groups_around.cuh"
#include "oracle/device/groups_values.cuh"
#include "oracle/device/groups_verdict.h"
#include "oracle/device/lanes.cuh"
#include "oracle/device/team.cuh"

namespace assay::oracle::device {

inline constexpr int kPairThreads = 128, kTileLanes = 16;
using PairTeam = Team<kPairThreads>;

__global__ void __launch_bounds__(32) start_pairs(const __grid_constant__ GroupCall call) {
  __shared__ double parts[1];
  Team<32> team{parts};
  start_pair(call, team, static_cast<int>(blockIdx.x));
}

/// Between both rounds: what the first one's sums come to.
template <bool kReplays>
__global__ void __launch_bounds__(32) start_exact_pairs(const __grid_constant__ GroupCall call,
                                                        const __grid_constant__ GroupCall first) {
  __shared__ double parts[1];
  Team<32> team{parts};
  join_around<kReplays>(first, team, static_cast<int>(blockIdx.x));
  start_exact_pair(call, first, team, static_cast<int>(blockIdx.x));
}

template <class Words>
__global__ void __launch_bounds__(kThreads, 2) score_units(const __grid_constant__ GroupCall call) {
  extern __shared__ __align__(128) unsigned char shared[];
  score_unit<Words>(call, static_cast<int>(blockIdx.x), shared);
}

__global__ void __launch_bounds__(kThreads, 2)
    score_units_exactly(const __grid_constant__ GroupCall call) {
  extern __shared__ __align__(128) unsigned char shared[];
  score_unit_exactly(call, static_cast<int>(blockIdx.x), shared);
}

__global__ void __launch_bounds__(32) join_pairs(const __grid_constant__ GroupCall call) {
  const int number = static_cast<int>(blockIdx.x * 32 + threadIdx.x);
  if (number < call.num_groups * kGroupPairs) join_logits(call, number);
}

/// Null where there is nothing to do.
__device__ inline PairWork *claimed_pair(const GroupCall &call, unsigned number) {
  PairWork *pair = call.pairs + number;
  return pair->row < 0 || pair->claim == 0 ? nullptr : pair;
}

template <bool kReplays>
__global__ void __launch_bounds__(kPairThreads, 4)
    look_at_stripes(const __grid_constant__ GroupCall call) {
  __shared__ double parts[kPairThreads / 32];
  PairTeam team{parts};
  const auto stripes = static_cast<unsigned>(call.stripes);
  PairWork *pair = claimed_pair(call, blockIdx.x / stripes);
  if (pair == nullptr) return;
  look_at_keys<kReplays>(call, team, LanesOf<kTileLanes>{}, *pair,
                         static_cast<int>(blockIdx.x % stripes), call.weights[blockIdx.x]);
}

template <bool kReplays>
__global__ void __launch_bounds__(kPairThreads) scan_pairs(const __grid_constant__ GroupCall call) {
  __shared__ double parts[kPairThreads / 32];
  PairTeam team{parts};
  PairWork *pair = claimed_pair(call, blockIdx.x);
  if (pair == nullptr) return;
  if (threadIdx.x == 0) join_weights(call, static_cast<int>(blockIdx.x), *pair);
  if constexpr (kReplays) {
    __syncthreads();
    scan_tiles(call, team, LanesOf<32>{}, *pair);
  }
}

template <bool kReplays>
__global__ void __launch_bounds__(kPairThreads, 4)
    weigh_stripes(const __grid_constant__ GroupCall call) {
  __shared__ double parts[kPairThreads / 32];
  PairTeam team{parts};
  const auto stripes = static_cast<unsigned>(call.stripes);
  const auto stripe = static_cast<int>(blockIdx.x % stripes);
  PairWork *pair = claimed_pair(call, blockIdx.x / stripes);
  if (pair == nullptr) return;
  const LanesOf<kTileLanes> lanes;
  if constexpr (kReplays)
    replay_keys(call, team, lanes, *pair, pair->numbers, stripe, call.replays[blockIdx.x]);
  else
    weigh_keys(call, lanes, *pair, stripe);
}

/// Blocks on a multiprocessor of the kernels over V: without sums of a replay and of weights there
/// are registers for more.
constexpr int blocks_over_values(bool more_sums) { return more_sums ? 2 : 3; }

template <class Words, bool kReplays, bool kTiny, bool kWeighs>
__global__ void __launch_bounds__(kThreads, blocks_over_values(kReplays || kWeighs))
    sum_values_of_units(const __grid_constant__ GroupCall call) {
  extern __shared__ __align__(128) unsigned char shared[];
  sum_values<Words, kReplays, kTiny, kWeighs>(call, static_cast<int>(blockIdx.x),
                                              static_cast<int>(blockIdx.y), shared);
}

template <bool kReplays>
__global__ void __launch_bounds__(kPairThreads)
    join_outputs(const __grid_constant__ GroupCall call) {
  __shared__ double parts[kPairThreads / 32];
  PairTeam team{parts};
  PairWork *pair = claimed_pair(call, blockIdx.x);
  if (pair == nullptr) return;
  join_columns<kReplays>(call, team, static_cast<int>(blockIdx.x), *pair);
  aim_along_error(call, team, static_cast<int>(blockIdx.x), *pair);
}

template <class Words>
__global__ void __launch_bounds__(kThreads, 3)
    sum_along_of_units(const __grid_constant__ GroupCall call) {
  extern __shared__ __align__(128) unsigned char shared[];
  sum_along<Words>(call, static_cast<int>(blockIdx.x), shared);
}

template <class Words, bool kReplays>
__global__ void __launch_bounds__(kThreads, blocks_over_values(kReplays))
    sum_around_of_units(const __grid_constant__ GroupCall call) {
  extern __shared__ __align__(128) unsigned char shared[];
  sum_around<Words, kReplays>(call, static_cast<int>(blockIdx.x), static_cast<int>(blockIdx.y),
                              shared);
}

__device__ inline TierElement *own_elements(const GroupCall &call) {
  return call.elements + int64_t{blockIdx.x} * call.base.tiers() * (call.base.dims + 1);
}

/// `last`: the call of the last round.
template <bool kReplays>
__global__ void __launch_bounds__(kPairThreads, 3)
    judge_pairs(const __grid_constant__ GroupCall call, const __grid_constant__ GroupCall last) {
  __shared__ double parts[kPairThreads / 32];
  PairTeam team{parts};
  for (int number = static_cast<int>(blockIdx.x); number < call.num_groups * kGroupPairs;
       number += static_cast<int>(gridDim.x)) {
    join_around<kReplays>(last, team, number);
    judge_pair<kReplays>(call, team, number, own_elements(call));
  }
}

/** A group's steps in one block, from its logits on. */
template <class Words, bool kReplays>
struct GroupBlock {
  const GroupCall &call;
  Team<kThreads> &team;
  const KeyGroup &group;
  const int first; ///< pair
  unsigned char *const shared;

  __device__ GroupBlock(const GroupCall &c, Team<kThreads> &t, int number, unsigned char *memory)
      : call(c), team(t), group(c.groups[number]), first(number * kGroupPairs), shared(memory) {}

  template <class F>
  __device__ void each_claimed(F f) {
    for (int number = first; number < first + group.pairs; ++number)
      if (PairWork *pair = claimed_pair(call, static_cast<unsigned>(number))) f(number, *pair);
    __syncthreads();
  }
  template <class F>
  __device__ void each_unit(F f) {
    for (int unit = group.first_unit; unit < group.first_unit + group.units; ++unit)
      f(unit);
  }
  template <class F>
  __device__ void each_stripe(F f) {
    each_claimed([&](int number, PairWork &pair) {
      for (int stripe = 0; stripe < call.stripes; ++stripe)
        f(number * call.stripes + stripe, pair, stripe);
    });
  }
  /// Calls f(pair) by one thread for each pair of the group.
  template <class F>
  __device__ void each_pair(F f) {
    if (static_cast<int>(threadIdx.x) < group.pairs) f(first + static_cast<int>(threadIdx.x));
    __syncthreads();
  }

  __device__ void run() {
    const LanesOf<32> lanes;
    each_pair([&](int number) { join_logits(call, number); });
    each_stripe([&](int at, PairWork &pair, int stripe) {
      look_at_keys<kReplays>(call, team, lanes, pair, stripe, call.weights[at]);
    });
    each_pair([&](int number) {
      if (PairWork *pair = claimed_pair(call, static_cast<unsigned>(number)))
        join_weights(call, number, *pair);
    });
    if constexpr (kReplays) {
      each_claimed([&](int, PairWork &pair) { scan_tiles(call, team, lanes, pair); });
      each_stripe([&](int at, PairWork &pair, int stripe) {
        replay_keys(call, team, lanes, pair, pair.numbers, stripe, call.replays[at]);
      });
    } else if (call.base.subnormal != 0) {
      each_stripe([&](int, PairWork &pair, int stripe) { weigh_keys(call, lanes, pair, stripe); });
    }
    sum();
  }

  __device__ void sum() {
    for (int part = 0; part < call.value_parts(); ++part)
      each_unit([&](int unit) {
        if (call.base.subnormal != 0)
          sum_values<Words, kReplays, true>(call, unit, part, shared);
        else
          sum_values<Words, kReplays, false>(call, unit, part, shared);
      });
    each_claimed([&](int number, PairWork &pair) {
      join_columns<kReplays>(call, team, number, pair);
      aim_along_error(call, team, number, pair);
    });
    each_unit([&](int unit) { sum_along<Words>(call, unit, shared); });
    for (int part = 0; part < call.value_parts(); ++part)
      each_unit([&](int unit) { sum_around<Words, kReplays>(call, unit, part, shared); });
    each_claimed([&](int number, PairWork &) { join_around<kReplays>(call, team, number); });
  }
};

/** Every step of a small call, a block a group. `exact`: the second round. */
template <class Words, bool kReplays>
__global__ void __launch_bounds__(kThreads, 1)
    judge_whole_groups(const __grid_constant__ GroupCall call,
                       const __grid_constant__ GroupCall exact) {
  extern __shared__ __align__(128) unsigned char shared[];
  __shared__ double parts[kThreads / 32];
  Team<kThreads> team{parts};
  for (int number = static_cast<int>(blockIdx.x); number < call.num_groups;
       number += static_cast<int>(gridDim.x)) {
    GroupBlock<Words, kReplays> block(call, team, number, shared);
    const int first = block.first, last = first + block.group.pairs;
    for (int pair = first; pair < last; ++pair)
      start_pair(call, team, pair);
    __syncthreads();
    block.each_unit([&](int unit) { score_unit<Words>(call, unit, shared); });
    block.run();
    if (kReplays && call.base.replay_scores != 0) {
      GroupBlock<Words, kReplays> again(exact, team, number, shared);
      for (int pair = first; pair < last; ++pair)
        start_exact_pair(exact, call, team, pair);
      __syncthreads();
      again.each_unit([&](int unit) { score_unit_exactly(exact, unit, shared); });
      again.run();
    }
    for (int pair = first; pair < last; ++pair)
      judge_pair<kReplays>(call, team, pair, own_elements(call));
  }
}

} // namespace assay::oracle::device
