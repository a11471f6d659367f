// SPDX-License-Identifier: Apache-2.0
// Internal: weighted sums over V of pairs that share keys, a block a unit, by fp64 MMAs.
#pragma once

#include <climits>

#include "oracle/device/groups_side.cuh"

namespace assay::oracle::device {

/// Magnitudes of 16 bits with their signs as numbers of two's complement, in order.
__device__ inline uint32_t ordered(uint32_t word) {
  return word ^ ((word >> 15 & 0x00010001u) * 0x7FFFu);
}
__device__ inline int ordered_half(uint32_t bits) {
  return static_cast<short>(ordered(bits & 0xFFFFu) & 0xFFFFu);
}
__device__ inline float number_of_ordered(bool bf16, int x) {
  const uint32_t bits = ordered(static_cast<uint32_t>(x) & 0xFFFFu);
  return bf16 ? Decoder::number<true>(bits << 16) : Decoder::number<false>(bits << 16);
}

struct ValueMemory {
  static constexpr int kKinds = 5; ///< from kOfWeight on; then kOfTiny
  SideMemory side;
  SeenKeys seen[kGroupPairs];
  int least[kGroupPairs][kGroupDim], most[kGroupPairs][kGroupDim]; ///< of v, ordered
  int special[kGroupPairs];                                        ///< KeyFlag
  __align__(16) double coefficients[2][(kKinds + 1) * kGroupPairs][kRowPitch];
};

/// Sums of a warp's 16 components: rows lane / 4 and 8 more; columns two kinds of four pairs.
struct ValueSums {
  double value[4] = {};                            ///< w v, rho v
  double size[4] = {}, rest[4] = {}, tiny[4] = {}; ///< |v|: rho, wide; doubt, steps; tiny twice
  uint32_t least[2] = {0x7FFF7FFFu, 0x7FFF7FFFu};  ///< of keys that all pairs see
  uint32_t most[2] = {0x80008000u, 0x80008000u};

  template <bool kTiny>
  __device__ void add(const Words &words, const unsigned char *values,
                      const double (*coefficients)[kRowPitch], bool all_see) {
    const int warp = static_cast<int>(threadIdx.x) / 32, lane = static_cast<int>(threadIdx.x) % 32;
    const int g = lane / 4, t = lane % 4;
    const unsigned char *v =
        values + (lane / 16 * 8 + lane % 8) * kValuePitch + 32 * warp + lane / 8 % 2 * 16;
#pragma unroll 1
    for (int step = 0; step < kTileKeys / 16; ++step) {
      uint32_t word[4];
      load_transposed(word, v + 16 * step * kValuePitch);
      if (all_see) {
#pragma unroll
        for (int i = 0; i < 4; ++i) {
          const uint32_t own = ordered(word[i]);
          least[i % 2] = __vmins2(least[i % 2], own);
          most[i % 2] = __vmaxs2(most[i % 2], own);
        }
      }
#pragma unroll
      for (int half = 0; half < 2; ++half) {
        const int key = 16 * step + 8 * half + 2 * t;
        const auto two = [&](int row) {
          return *reinterpret_cast<const double2 *>(&coefficients[row][key]);
        };
        double x[4];
        words.decode(word[2 * half], word[2 * half + 1], x);
        double2 b = two(g);
        multiply8(value, x, b.x, b.y);
        for (double &one : x)
          one = fabs(one);
        b = two(kGroupPairs * kOfRho + g);
        multiply8(size, x, b.x, b.y);
        b = two(kGroupPairs * kOfDoubt + g);
        multiply8(rest, x, b.x, b.y);
        if constexpr (kTiny) {
          b = two(kGroupPairs * ValueMemory::kKinds + g % kGroupPairs);
          multiply8(tiny, x, b.x, b.y);
        }
      }
    }
  }

  __device__ void store(const GroupCall &call, const SideLoop &loop) const {
    static_assert(kOfWeight == 0 && kOfRho == 1 && kOfWide == 2 && kOfDoubt == 3 && kOfSteps == 4);
    const int warp = static_cast<int>(threadIdx.x) / 32, lane = static_cast<int>(threadIdx.x) % 32;
    const double unscale = ldexp(1.0, loop.decoder.exponent - kCoefficientScale);
    const int dims = call.tiers.base.dims;
    const auto put = [&](int column, int sum, int dim, double x) {
      const int pair = column % kGroupPairs;
      if (pair >= loop.group.pairs || dim >= dims) return;
      call.sums[(call.unit_pair(loop.unit, pair) * kGroupSums + sum) * dims + dim] = x * unscale;
    };
#pragma unroll
    for (int e = 0; e < 4; ++e) {
      const int column = 2 * (lane % 4) + e % 2, dim = 16 * warp + lane / 4 + e / 2 * 8;
      const bool second = column >= kGroupPairs;
      put(column, second ? kSumRho : kSumValue, dim, value[e]);
      put(column, second ? kSumWide : kSumRhoSize, dim, size[e]);
      put(column, second ? kSumSteps : kSumDoubt, dim, rest[e]);
      if (!second) put(column, kSumTiny, dim, tiny[e]);
    }
  }

  /// The range of keys that all pairs see, for all of them.
  __device__ void join_ranges(ValueMemory &memory, int pairs) const {
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
      const int dim = 16 * warp + lane / 4 + 8 * i;
      for (int pair = lane % 4; pair < pairs; pair += 4) {
        atomicMin(&memory.least[pair][dim], from);
        atomicMax(&memory.most[pair][dim], to);
      }
    }
  }
};

/// Ranges of v over a tile that not all pairs see whole.
__device__ inline void look_at_range(const SideLoop &loop, int number, ValueMemory &memory) {
  const int dim = static_cast<int>(threadIdx.x) % kGroupDim;
  constexpr int kShare = kTileKeys * kGroupDim / kThreads;
  const int first = static_cast<int>(threadIdx.x) / kGroupDim * kShare;
  const unsigned char *values = loop.tile(number) + 2 * dim;
  for (int pair = 0; pair < loop.group.pairs; ++pair) {
    int least = 0x7FFF, most = -0x8000;
    for (int key = first; key < first + kShare; ++key) {
      if (!memory.seen[pair](loop.position(number) + key)) continue;
      const int x =
          ordered_half(*reinterpret_cast<const unsigned short *>(values + key * kValuePitch));
      least = min(least, x);
      most = max(most, x);
    }
    atomicMin(&memory.least[pair][dim], least);
    atomicMax(&memory.most[pair][dim], most);
  }
}

template <bool kTiny>
__global__ void __launch_bounds__(kThreads, 2) sum_values(const __grid_constant__ GroupCall call) {
  extern __shared__ __align__(128) unsigned char shared[];
  auto &memory = *reinterpret_cast<ValueMemory *>(shared);
  SideLoop loop(call, true, kValuePitch, memory.side, shared + sizeof(ValueMemory));
  const int thread = static_cast<int>(threadIdx.x), pairs = loop.group.pairs;
  if (thread < kGroupPairs) {
    memory.seen[thread] = seen_by(call, loop.group, thread);
    memory.special[thread] = 0;
  }
  for (int at = thread; at < kGroupPairs * kGroupDim; at += kThreads) {
    memory.least[at / kGroupDim][at % kGroupDim] = 0x7FFF;
    memory.most[at / kGroupDim][at % kGroupDim] = -0x8000;
  }
  const auto coefficients = [&](int number) {
    load_coefficients(loop, number, kOfWeight, ValueMemory::kKinds, kTiny,
                      memory.coefficients[number % 2]);
  };
  loop.start(coefficients);
  const Words words(call.tiers.base.kv_dtype == ASSAY_BF16);
  int begin = INT_MIN, end = INT_MAX; // what all pairs see
  for (int pair = 0; pair < pairs; ++pair) {
    begin = max(begin, memory.seen[pair].begin);
    end = min(end, memory.seen[pair].end);
  }
  const int index = thread / kTileKeys, key = thread % kTileKeys;
  ValueSums sums;
  uint32_t special = 0;
  for (int number = 0; number < loop.count(); ++number) {
    loop.turn_to(number, coefficients);
    const int position = loop.position(number);
    const bool all_see = position >= begin && position + kTileKeys <= end;
    sums.add<kTiny>(words, loop.tile(number), memory.coefficients[number % 2], all_see);
    if (index < pairs && memory.seen[index](position + key))
      special |= memory.side.marks[number % 2][key];
    if (!all_see) look_at_range(loop, number, memory);
  }
  sums.store(call, loop);
  sums.join_ranges(memory, pairs);
  if (special != 0) atomicOr(&memory.special[index], static_cast<int>(special));
  __syncthreads();
  if (thread < pairs)
    call.values[call.unit_pair(loop.unit, thread)] = {
        (memory.special[thread] & kNotFinite) == 0,
        (memory.special[thread] & static_cast<int>(kSubnormalMark)) != 0};
  const int dims = call.tiers.base.dims;
  for (int at = thread; at < pairs * dims; at += kThreads) {
    const int pair = at / dims, dim = at % dims;
    const int least = memory.least[pair][dim], most = memory.most[pair][dim];
    const bool none = least > most;
    const bool bf16 = call.tiers.base.kv_dtype == ASSAY_BF16;
    float *ranges = call.ranges + 2 * call.unit_pair(loop.unit, pair) * dims + dim;
    ranges[0] = none ? INFINITY : number_of_ordered(bf16, least);
    ranges[dims] = none ? -INFINITY : number_of_ordered(bf16, most);
  }
}

} // namespace assay::oracle::device
