// SPDX-License-Identifier: Apache-2.0
// Internal: weighted sums over V of pairs that share keys, a block a unit and kPartDim components,
// by fp64 MMAs.
#pragma once

#include <climits>

#include "oracle/device/groups_weights.cuh"

namespace assay::oracle::device {

/// The coefficients of the sums, in the order of their rows.
template <bool kReplays, bool kTiny>
struct ValueKinds {
  static constexpr int kFirst = kReplays ? 5 : 2, kCount = kFirst + (kTiny ? 1 : 0);

  ORACLE_HOST_DEVICE static constexpr int kind(int i) {
    if (i == kFirst) return tiny_kind(kReplays);
    if (!kReplays) return i == 0 ? kOfWeight : kOfError;
    return i == 0 ? kOfWeight : kOfRho + (i - 1);
  }
};
static_assert(kOfWide == kOfRho + 1 && kOfDoubt == kOfRho + 2 && kOfSteps == kOfRho + 3);

template <class Kinds>
struct ValueMemory {
  SideMemory side;
  SeenKeys seen[kGroupPairs];
  int least[kGroupPairs][kPartDim], most[kGroupPairs][kPartDim]; ///< of v, in order
  int special[kGroupPairs];                                      ///< KeyFlag
  double weights[kWarps][8];                                     ///< TileWeights::store
  __align__(16) double coefficients[2][Kinds::kCount * kGroupPairs][kRowPitch];
};

/// Sums of a warp's 16 components: rows lane / 4 and 8 more; columns two kinds of four pairs.
template <class Words, bool kReplays, bool kTiny>
struct ValueSums {
  using Kinds = ValueKinds<kReplays, kTiny>;
  double value[4] = {};                           ///< w v; with a replay rho v
  double size[4] = {};                            ///< |v|: wide, tiny; with a replay rho, wide
  double rest[4] = {}, tiny[4] = {};              ///< of a replay, |v|: doubt, steps; tiny twice
  uint32_t least[2] = {0x7FFF7FFFu, 0x7FFF7FFFu}; ///< of keys that all pairs see, of Halves
  uint32_t most[2] = {0x80008000u, 0x80008000u};

  __device__ void add(const Words &words, const unsigned char *values,
                      const double (*coefficients)[kRowPitch], bool all_see) {
    const int g = static_cast<int>(threadIdx.x) % 32 / 4, t = static_cast<int>(threadIdx.x) % 4;
#pragma unroll 1
    for (int step = 0; step < kTileKeys / 16; ++step) {
      const typename Words::Columns columns = Words::columns(values, step);
      if constexpr (Words::kBytes == 2)
        if (all_see) look_at(columns);
#pragma unroll
      for (int half = 0; half < 2; ++half) {
        const int key = 16 * step + 8 * half + 2 * t;
        const auto two = [&](int row) {
          return *reinterpret_cast<const double2 *>(&coefficients[row][key]);
        };
        double x[4];
        words.decode(columns, half, x);
        if constexpr (kReplays)
          add_replayed(x, g, two);
        else
          add_first(x, g, two);
      }
    }
  }

  template <class Two>
  __device__ void add_first(double (&x)[4], int g, Two two) {
    const int pair = g % kGroupPairs;
    const double2 weight = two(pair), error = two(kGroupPairs + pair);
    multiply8(value, x, weight.x, weight.y);
    for (double &one : x)
      one = fabs(one);
    double2 b{weight.x + error.x, weight.y + error.y};
    if (g >= kGroupPairs) {
      b = {0.0, 0.0};
      if constexpr (kTiny) b = two(kGroupPairs * Kinds::kFirst + pair);
    }
    multiply8(size, x, b.x, b.y);
  }

  template <class Two>
  __device__ void add_replayed(double (&x)[4], int g, Two two) {
    double2 b = two(g);
    multiply8(value, x, b.x, b.y);
    for (double &one : x)
      one = fabs(one);
    b = two(kGroupPairs + g);
    multiply8(size, x, b.x, b.y);
    b = two(3 * kGroupPairs + g);
    multiply8(rest, x, b.x, b.y);
    if constexpr (kTiny) {
      b = two(kGroupPairs * Kinds::kFirst + g % kGroupPairs);
      multiply8(tiny, x, b.x, b.y);
    }
  }

  __device__ void look_at(const Halves::Columns &columns) {
#pragma unroll
    for (int i = 0; i < 4; ++i) {
      const uint32_t own = Halves::ordered(columns.word[i]);
      least[i % 2] = __vmins2(least[i % 2], own);
      most[i % 2] = __vmaxs2(most[i % 2], own);
    }
  }

  __device__ void store(const GroupCall &call, const SideLoop<Words> &loop) const {
    const int warp = static_cast<int>(threadIdx.x) / 32, lane = static_cast<int>(threadIdx.x) % 32;
    const double unscale = ldexp(1.0, loop.words.exponent - kCoefficientScale);
    const int dims = call.base.dims;
    const auto put = [&](int column, int sum, int dim, double x) {
      const int pair = column % kGroupPairs;
      if (pair >= loop.group.pairs || dim >= dims) return;
      call.sums[(call.unit_pair(loop.unit, pair) * kGroupSums + sum) * dims + dim] = x * unscale;
    };
#pragma unroll
    for (int e = 0; e < 4; ++e) {
      const int column = 2 * (lane % 4) + e % 2;
      const int dim = kPartDim * loop.part + 16 * warp + lane / 4 + e / 2 * 8;
      const bool second = column >= kGroupPairs;
      if constexpr (kReplays) {
        put(column, second ? kSumRho : kSumValue, dim, value[e]);
        put(column, second ? kSumWide : kSumRhoSize, dim, size[e]);
        put(column, second ? kSumSteps : kSumDoubt, dim, rest[e]);
        if (!second) put(column, kSumTiny, dim, tiny[e]);
      } else {
        if (!second) put(column, kSumValue, dim, value[e]);
        put(column, second ? kSumTiny : kSumWide, dim, size[e]);
      }
    }
  }

  /// The range of keys that all pairs see, for all of them.
  __device__ void join_ranges(ValueMemory<Kinds> &memory, int pairs) const {
    const int warp = static_cast<int>(threadIdx.x) / 32, lane = static_cast<int>(threadIdx.x) % 32;
#pragma unroll
    for (int i = 0; i < 2; ++i) {
      const auto low = [](uint32_t x) { return static_cast<int>(static_cast<short>(x & 0xFFFF)); };
      const auto high = [](uint32_t x) { return static_cast<int>(static_cast<short>(x >> 16)); };
      int from = min(low(least[i]), high(least[i])), to = max(low(most[i]), high(most[i]));
      for (int step = 1; step < 4; step *= 2) {
        from = min(from, __shfl_xor_sync(~0u, from, step));
        to = max(to, __shfl_xor_sync(~0u, to, step));
      }
      if (from > to) continue; // there are none
      const int dim = 16 * warp + lane / 4 + 8 * i;
      for (int pair = lane % 4; pair < pairs; pair += 4) {
        atomicMin(&memory.least[pair][dim], from);
        atomicMax(&memory.most[pair][dim], to);
      }
    }
  }
};

/// Ranges of v over a tile that not all pairs see whole.
template <class Words, class Memory>
__device__ inline void look_at_range(const SideLoop<Words> &loop, int number, Memory &memory) {
  const int dim = static_cast<int>(threadIdx.x) % kPartDim;
  constexpr int kShare = kTileKeys * kPartDim / kThreads;
  const int first = static_cast<int>(threadIdx.x) / kPartDim * kShare;
  const unsigned char *values = loop.tile(number) + Words::kBytes * dim;
  for (int pair = 0; pair < loop.group.pairs; ++pair) {
    int least = INT_MAX, most = INT_MIN;
    for (int key = first; key < first + kShare; ++key) {
      if (!memory.seen[pair](loop.position(number) + key)) continue;
      const int x = Words::order_of(values + key * Words::kValuePitch);
      least = min(least, x);
      most = max(most, x);
    }
    atomicMin(&memory.least[pair][dim], least);
    atomicMax(&memory.most[pair][dim], most);
  }
}

/// What all pairs of a group see.
__device__ inline SeenKeys seen_by_all(const SeenKeys *seen, int pairs) {
  SeenKeys all{INT_MIN, INT_MAX};
  for (int pair = 0; pair < pairs; ++pair) {
    all.begin = max(all.begin, seen[pair].begin);
    all.end = min(all.end, seen[pair].end);
  }
  return all;
}

/// What the block's threads found of a unit's values.
template <class Words, class Memory>
__device__ inline void store_value_parts(const SideLoop<Words> &loop, const Memory &memory) {
  const GroupCall &call = loop.call;
  const int thread = static_cast<int>(threadIdx.x), pairs = loop.group.pairs;
  const int dims = call.base.dims;
  if (thread < pairs) {
    const int special = memory.special[thread];
    call.value_part(loop.unit, thread, loop.part) = {(special & kNotFinite) == 0,
                                                     (special & kSubnormal) != 0};
  }
  for (int at = thread; at < pairs * kPartDim; at += kThreads) {
    const int pair = at / kPartDim, own = at % kPartDim, dim = kPartDim * loop.part + own;
    if (dim >= dims) continue;
    const int least = memory.least[pair][own], most = memory.most[pair][own];
    const bool none = least > most;
    float *ranges = call.ranges + 2 * call.unit_pair(loop.unit, pair) * dims + dim;
    ranges[0] = none ? INFINITY : loop.words.number_of_order(least);
    ranges[dims] = none ? -INFINITY : loop.words.number_of_order(most);
  }
}

template <class Words, bool kReplays, bool kTiny>
struct ValuePlaces {
  using Memory = ValueMemory<ValueKinds<kReplays, kTiny>>;
  static constexpr size_t kTilesAt = (sizeof(Memory) + 127) / 128 * 128;
  static constexpr size_t kBytes = kTilesAt + 2 * kTileKeys * Words::kValuePitch;
};

/// kWeighs: weights are made here.
template <class Words, bool kReplays, bool kTiny, bool kWeighs = false>
__device__ inline void sum_values(const GroupCall &call, int unit, int part,
                                  unsigned char *shared) {
  using Places = ValuePlaces<Words, kReplays, kTiny>;
  using Kinds = ValueKinds<kReplays, kTiny>;
  auto &memory = *reinterpret_cast<typename Places::Memory *>(shared);
  SideLoop<Words> loop(call, unit, true, part, memory.side, shared + Places::kTilesAt);
  const int thread = static_cast<int>(threadIdx.x), pairs = loop.group.pairs;
  if (thread < kGroupPairs) {
    memory.seen[thread] = seen_by(call, loop.group, thread);
    memory.special[thread] = 0;
  }
  for (int at = thread; at < kGroupPairs * kPartDim; at += kThreads) {
    memory.least[at / kPartDim][at % kPartDim] = INT_MAX;
    memory.most[at / kPartDim][at % kPartDim] = INT_MIN;
  }
  TileWeights<Words> weights(loop);
  const auto coefficients = [&](int number) {
    if constexpr (kWeighs)
      weights.weigh(number, memory.coefficients[number % 2]);
    else
      load_coefficients<Kinds>(loop, number, memory.coefficients[number % 2]);
  };
  static_assert(!kWeighs || !(kReplays || kTiny));
  loop.start(coefficients);
  const SeenKeys all = seen_by_all(memory.seen, pairs);
  const PairKey own;
  ValueSums<Words, kReplays, kTiny> sums;
  uint32_t special = 0;
  for (int number = 0; number < loop.count(); ++number) {
    loop.turn_to(number, coefficients);
    const int position = loop.position(number);
    const bool all_see =
        Words::kBytes == 2 && position >= all.begin && position + kTileKeys <= all.end;
    sums.add(loop.words, loop.tile(number), memory.coefficients[number % 2], all_see);
    if (own.index < pairs && memory.seen[own.index](position + own.key))
      special |= memory.side.marks[number % 2][own.key];
    if (!all_see) look_at_range(loop, number, memory);
  }
  if constexpr (kWeighs) weights.store(memory.weights);
  sums.store(call, loop);
  sums.join_ranges(memory, pairs);
  if (special != 0) atomicOr(&memory.special[own.index], static_cast<int>(special));
  __syncthreads();
  store_value_parts(loop, memory);
  __syncthreads();
}

} // namespace assay::oracle::device
