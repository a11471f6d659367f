// SPDX-License-Identifier: Apache-2.0
// Internal: the steps over pairs that share keys as launches, one behind another.
#pragma once

#include "oracle/device/groups_around.cuh"
#include "oracle/device/groups_replay.h"
#include "oracle/device/groups_scores.cuh"
#include "oracle/device/groups_values.cuh"
#include "oracle/device/team.cuh"

namespace assay::oracle::device {

/** Lanes of a warp that follow each other, as a part of a block. */
template <int kLanes>
struct LanesOf {
  __device__ static int rank() { return static_cast<int>(threadIdx.x) % kLanes; }
  __device__ static int size() { return kLanes; }
  __device__ static int number() { return static_cast<int>(threadIdx.x) / kLanes; }
  __device__ static int count() { return static_cast<int>(blockDim.x) / kLanes; }
  /// The lanes themselves: others of the warp may be elsewhere.
  __device__ static unsigned mask() {
    return ~0u >> (32 - kLanes) << (threadIdx.x % 32 / kLanes * kLanes);
  }
  __device__ static void sync() { __syncwarp(mask()); }
  __device__ static double most(double x) {
    for (int step = kLanes / 2; step > 0; step /= 2)
      x = fmax(x, __shfl_xor_sync(mask(), x, step));
    return x;
  }
  __device__ static double sum(double x) {
    for (int step = kLanes / 2; step > 0; step /= 2)
      x += __shfl_xor_sync(mask(), x, step);
    return x;
  }
  __device__ static double most_to(double x) {
    for (int step = 1; step < kLanes; step *= 2) {
      const double other = __shfl_up_sync(mask(), x, step, kLanes);
      if (rank() >= step) x = fmax(x, other);
    }
    return x;
  }
  __device__ static int64_t sum_to(int64_t x) {
    for (int step = 1; step < kLanes; step *= 2) {
      const int64_t other = __shfl_up_sync(mask(), x, step, kLanes);
      if (rank() >= step) x += other;
    }
    return x;
  }
  __device__ static double before(double x, double other) {
    const double left = __shfl_up_sync(mask(), x, 1, kLanes);
    return rank() == 0 ? other : left;
  }
  template <class T>
  __device__ static T last(T x) {
    return __shfl_sync(mask(), x, kLanes - 1, kLanes);
  }
};

inline constexpr int kPairThreads = 128, kTileLanes = 16;
using PairTeam = Team<kPairThreads>;

__global__ void __launch_bounds__(32) start_pairs(const __grid_constant__ GroupCall call) {
  __shared__ double parts[1];
  Team<32> team{parts};
  start_pair(call, team, static_cast<int>(blockIdx.x));
}

__global__ void __launch_bounds__(32) join_pairs(const __grid_constant__ GroupCall call) {
  const int number = static_cast<int>(blockIdx.x * 32 + threadIdx.x);
  if (number < call.num_groups * kGroupPairs) join_logits(call, number);
}

/// A pair's block, or a block of its stripe: null where there is nothing to do.
__device__ inline PairWork *claimed_pair(const GroupCall &call, unsigned number) {
  PairWork *pair = call.pairs + number;
  return pair->row < 0 || pair->claim == 0 ? nullptr : pair;
}

__global__ void __launch_bounds__(kPairThreads, 4)
    look_at_stripes(const __grid_constant__ GroupCall call) {
  __shared__ double parts[kPairThreads / 32];
  PairTeam team{parts};
  const auto stripes = static_cast<unsigned>(call.stripes);
  const PairWork *pair = claimed_pair(call, blockIdx.x / stripes);
  if (pair == nullptr) return;
  look_at_keys(call, team, LanesOf<kTileLanes>{}, *pair, static_cast<int>(blockIdx.x % stripes),
               call.weights[blockIdx.x]);
}

__global__ void __launch_bounds__(kPairThreads) scan_pairs(const __grid_constant__ GroupCall call) {
  __shared__ double parts[kPairThreads / 32];
  PairTeam team{parts};
  PairWork *pair = claimed_pair(call, blockIdx.x);
  if (pair != nullptr) scan_tiles(call, team, LanesOf<32>{}, static_cast<int>(blockIdx.x), *pair);
}

__global__ void __launch_bounds__(kPairThreads, 4)
    replay_stripes(const __grid_constant__ GroupCall call) {
  __shared__ double parts[kPairThreads / 32];
  PairTeam team{parts};
  const auto stripes = static_cast<unsigned>(call.stripes);
  PairWork *pair = claimed_pair(call, blockIdx.x / stripes);
  if (pair == nullptr) return;
  replay_keys(call, team, LanesOf<kTileLanes>{}, *pair, pair->numbers,
              static_cast<int>(blockIdx.x % stripes), call.replays[blockIdx.x]);
}

__global__ void __launch_bounds__(kPairThreads)
    join_outputs(const __grid_constant__ GroupCall call) {
  __shared__ double parts[kPairThreads / 32];
  PairTeam team{parts};
  PairWork *pair = claimed_pair(call, blockIdx.x);
  if (pair != nullptr) join_columns(call, team, static_cast<int>(blockIdx.x), *pair);
}

__global__ void __launch_bounds__(kPairThreads, 3)
    judge_pairs(const __grid_constant__ GroupCall call) {
  __shared__ double parts[kPairThreads / 32];
  PairTeam team{parts};
  TierElement *elements =
      call.elements + int64_t{blockIdx.x} * TierScratch::kTiers * (call.tiers.base.dims + 1);
  for (int number = static_cast<int>(blockIdx.x); number < call.num_groups * kGroupPairs;
       number += static_cast<int>(gridDim.x))
    judge_pair(call, team, number, elements);
}

/** What groups need on a device. */
class GroupDevice {
public:
  TierReport judge(const AttentionRows &rows, const CallOutputs &outputs, const KernelModel &model,
                   bool elements, cudaStream_t stream) {
    const TierArrays arrays = arrays_of(rows, model);
    const GroupPlan plan = plan_groups(rows, arrays, may_be_subnormal(arrays.shape.model), kSizes);
    GroupCall call = arrays_.upload(
        [&](const Place &place) {
          return make_group_call(rows, outputs, model, arrays, plan, place);
        },
        stream);
    if (call.tiers.pairs == 0) return {};
    const KeyGroup *groups = call.groups;
    size_t most = 0;
    for (const GroupWave &wave : plan.waves) {
      size_t bytes = 0;
      place_wave(call, wave, groups, teams(wave), [&](size_t own) -> void * {
        bytes += padded(own);
        return nullptr;
      });
      most = std::max(most, bytes);
    }
    auto *scratch = scratch_.roomy<unsigned char>(most);
    return results_.of(call.tiers, rows.out, outputs.lse != nullptr, elements, stream,
                       [&](const TierCall &ready) {
                         call.tiers = ready;
                         for (const GroupWave &wave : plan.waves) {
                           size_t at = 0;
                           place_wave(call, wave, groups, teams(wave), [&](size_t own) -> void * {
                             unsigned char *place = scratch + at;
                             at += padded(own);
                             return place;
                           });
                           launch(call, wave, stream);
                         }
                       });
  }

private:
  static constexpr GroupSizes kSizes{int64_t{256} << 20, 528, 4};
  static_assert(sizeof(GroupCall) <= 4096);

  static size_t padded(size_t bytes) { return (bytes + 255) / 256 * 256; }
  int64_t teams(const GroupWave &wave) const {
    return std::min<int64_t>(judges_, int64_t{wave.groups} * kGroupPairs);
  }

  template <class Kernel>
  static void launch_units(Kernel kernel, size_t bytes, const GroupCall &call,
                           cudaStream_t stream) {
    if (call.num_units == 0) return;
    require(cudaFuncSetAttribute(reinterpret_cast<const void *>(kernel),
                                 cudaFuncAttributeMaxDynamicSharedMemorySize,
                                 static_cast<int>(bytes)),
            "shared memory");
    kernel<<<static_cast<unsigned>(call.num_units), kThreads, bytes, stream>>>(call);
  }

  void launch(const GroupCall &call, const GroupWave &wave, cudaStream_t stream) const {
    const auto pairs = static_cast<unsigned>(wave.groups) * kGroupPairs;
    const unsigned stripes = pairs * static_cast<unsigned>(wave.stripes);
    const auto tiles = [](int pitch) { return static_cast<size_t>(2 * kTileKeys * pitch); };
    start_pairs<<<pairs, 32, 0, stream>>>(call);
    launch_units(score_units, sizeof(ScoreMemory) + tiles(kScorePitch), call, stream);
    join_pairs<<<(pairs + 31) / 32, 32, 0, stream>>>(call);
    look_at_stripes<<<stripes, kPairThreads, 0, stream>>>(call);
    scan_pairs<<<pairs, kPairThreads, 0, stream>>>(call);
    replay_stripes<<<stripes, kPairThreads, 0, stream>>>(call);
    const size_t bytes = sizeof(ValueMemory) + tiles(kValuePitch);
    if (call.tiers.base.subnormal != 0)
      launch_units(sum_values<true>, bytes, call, stream);
    else
      launch_units(sum_values<false>, bytes, call, stream);
    join_outputs<<<pairs, kPairThreads, 0, stream>>>(call);
    launch_units(sum_around, sizeof(AroundMemory) + tiles(kValuePitch), call, stream);
    judge_pairs<<<static_cast<unsigned>(teams(wave)), kPairThreads, 0, stream>>>(call);
    require(cudaGetLastError(), "launch");
  }

  PackedArrays arrays_;
  TeamResults results_;
  Buffer scratch_;
  const int judges_ = blocks_at_once(judge_pairs, kPairThreads);
};

} // namespace assay::oracle::device
