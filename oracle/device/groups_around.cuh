// SPDX-License-Identifier: Apache-2.0
// Internal: sums around the outputs, exact and replayed, of pairs that share keys, a block a unit
// and kPartDim components, by fp64 FMAs.
#pragma once

#include "oracle/device/groups_side.cuh"

namespace assay::oracle::device {

/// The coefficients of the sums, in the order of their rows.
template <bool kReplays>
struct AroundKinds {
  static constexpr int kCount = kReplays ? 3 : 1;

  ORACLE_HOST_DEVICE static constexpr int kind(int i) {
    return i == 0 ? kOfError : i == 1 ? kOfRescale : kOfMass;
  }
};

template <bool kReplays>
struct AroundMemory {
  SideMemory side;
  __align__(16) double coefficients[2][AroundKinds<kReplays>::kCount * kGroupPairs][kRowPitch];
};

/// Two components of a share of a tile's keys. Decoded values are times 2^kLift, and outputs in
/// their units: as small as halves are decoded, small outputs would lose bits.
template <class Words, bool kReplays>
struct AroundSums {
  static constexpr int kLift = Words::kBytes == 2 ? 500 : 0;
  const int pairs; ///< of the group
  double center[kGroupPairs][2], replayed[kGroupPairs][2];
  double around[kGroupPairs][2] = {}, again[kGroupPairs][2] = {};

  /// Begins the sums of components `dim` and `dim + 1`.
  __device__ AroundSums(const SideLoop<Words> &loop, int dim) : pairs(loop.group.pairs) {
    const GroupCall &call = loop.call;
    const auto group = static_cast<int>(&loop.group - call.groups);
    const double down = ldexp(1.0, kLift - loop.words.exponent);
#pragma unroll
    for (int pair = 0; pair < kGroupPairs; ++pair)
#pragma unroll
      for (int i = 0; i < 2; ++i) {
        const bool has = pair < loop.group.pairs && dim + i < call.base.dims;
        const int64_t at = (int64_t{group} * kGroupPairs + pair) * call.base.dims + dim + i;
        center[pair][i] = has ? call.columns[at].mid * down : 0.0;
        replayed[pair][i] = has && kReplays ? call.columns[at].replayed.value * down : 0.0;
      }
  }

  __device__ void add(const Words &words, const unsigned char *values,
                      const double (*coefficients)[kRowPitch], int first, int keys) {
    for (int key = first; key < first + keys; key += 2) {
      const double2 v[2] = {lifted(words.two(values + key * Words::kValuePitch)),
                            lifted(words.two(values + (key + 1) * Words::kValuePitch))};
#pragma unroll
      for (int pair = 0; pair < kGroupPairs; ++pair) {
        if (pair >= pairs) break;
        const auto two = [&](int kind) {
          return *reinterpret_cast<const double2 *>(&coefficients[kind * kGroupPairs + pair][key]);
        };
        const double2 error = two(0);
        add_around(pair, 0, error, v[0].x, v[1].x);
        add_around(pair, 1, error, v[0].y, v[1].y);
        if constexpr (kReplays) {
          const double2 rescale = two(1), mass = two(2);
          add_again(pair, 0, rescale, mass, v[0].x, v[1].x);
          add_again(pair, 1, rescale, mass, v[0].y, v[1].y);
        }
      }
    }
  }

  __device__ static double2 lifted(double2 v) {
    if constexpr (kLift == 0) return v;
    return {v.x * 0x1p500, v.y * 0x1p500};
  }
  __device__ void add_around(int pair, int i, double2 error, double v0, double v1) {
    double &sum = around[pair][i];
    sum = fma(error.x, fabs(v0 - center[pair][i]), sum);
    sum = fma(error.y, fabs(v1 - center[pair][i]), sum);
  }
  __device__ void add_again(int pair, int i, double2 rescale, double2 mass, double v0, double v1) {
    double &sum = again[pair][i];
    sum += fabs(fma(rescale.x, v0, -(mass.x * replayed[pair][i])));
    sum += fabs(fma(rescale.y, v1, -(mass.y * replayed[pair][i])));
  }
};

template <class Words, bool kReplays>
struct AroundPlaces {
  using Memory = AroundMemory<kReplays>;
  static constexpr int kSides = kReplays ? 2 : 1, kColumns = kPartDim / 2;
  static constexpr int kShares = kThreads / kColumns, kSums = kGroupPairs * kSides * kPartDim;
  static constexpr size_t kTilesAt = (sizeof(Memory) + 127) / 128 * 128;
  static constexpr size_t kTileBytes = 2 * kTileKeys * Words::kValuePitch;
  static constexpr size_t kBytes = kTilesAt + kTileBytes;
  static_assert(kSums * kShares * sizeof(double) <= kTileBytes);
};

/// The shares' sums joined, where tiles were.
template <class Words, bool kReplays>
__device__ inline void store_around(const SideLoop<Words> &loop,
                                    const AroundSums<Words, kReplays> &sums) {
  using Places = AroundPlaces<Words, kReplays>;
  const GroupCall &call = loop.call;
  const int column = static_cast<int>(threadIdx.x) % Places::kColumns;
  const int share = static_cast<int>(threadIdx.x) / Places::kColumns, dims = call.base.dims;
  auto *parts = reinterpret_cast<double *>(loop.tiles);
  __syncthreads();
#pragma unroll
  for (int pair = 0; pair < kGroupPairs; ++pair)
#pragma unroll
    for (int i = 0; i < 2; ++i) {
      double *to =
          parts + share * Places::kSums + Places::kSides * pair * kPartDim + 2 * column + i;
      to[0] = sums.around[pair][i];
      if constexpr (kReplays) to[kPartDim] = sums.again[pair][i];
    }
  __syncthreads();
  const double unscale =
      ldexp(1.0, loop.words.exponent - AroundSums<Words, kReplays>::kLift - kCoefficientScale);
  for (int at = static_cast<int>(threadIdx.x); at < Places::kSums; at += kThreads) {
    const int pair = at / (Places::kSides * kPartDim), kind = at / kPartDim % Places::kSides;
    const int dim = kPartDim * loop.part + at % kPartDim;
    if (pair >= loop.group.pairs || dim >= dims) continue;
    double sum = 0.0;
    for (int of = 0; of < Places::kShares; ++of)
      sum += parts[of * Places::kSums + at];
    call.centered[(2 * call.unit_pair(loop.unit, pair) + kind) * dims + dim] = sum * unscale;
  }
}

template <class Words, bool kReplays>
__device__ inline void sum_around(const GroupCall &call, int unit, int part,
                                  unsigned char *shared) {
  using Places = AroundPlaces<Words, kReplays>;
  auto &memory = *reinterpret_cast<typename Places::Memory *>(shared);
  SideLoop<Words> loop(call, unit, true, part, memory.side, shared + Places::kTilesAt);
  const auto coefficients = [&](int number) {
    load_coefficients<AroundKinds<kReplays>>(loop, number, memory.coefficients[number % 2]);
  };
  loop.start(coefficients);
  const int column = static_cast<int>(threadIdx.x) % Places::kColumns;
  const int share = static_cast<int>(threadIdx.x) / Places::kColumns;
  AroundSums<Words, kReplays> sums(loop, kPartDim * part + 2 * column);
  constexpr int kKeys = kTileKeys / Places::kShares;
  for (int number = 0; number < loop.count(); ++number) {
    loop.turn_to(number, coefficients);
    sums.add(loop.words, loop.tile(number) + 2 * Words::kBytes * column,
             memory.coefficients[number % 2], kKeys * share, kKeys);
  }
  store_around(loop, sums);
  __syncthreads();
}

} // namespace assay::oracle::device
