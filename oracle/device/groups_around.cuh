// SPDX-License-Identifier: Apache-2.0
// Internal: sums around the outputs, exact and replayed, of pairs that share keys, a block a unit,
// by fp64 FMAs.
#pragma once

#include "oracle/device/groups_side.cuh"

namespace assay::oracle::device {

struct AroundMemory {
  static constexpr int kKinds = 3; ///< from kOfError on
  SideMemory side;
  __align__(16) double coefficients[2][kKinds * kGroupPairs][kRowPitch];
};

/// Two components of a share of a tile's keys; outputs in the units of decoded values.
struct AroundSums {
  double center[kGroupPairs][2], replayed[kGroupPairs][2];
  double around[kGroupPairs][2] = {}, again[kGroupPairs][2] = {};

  __device__ void add(const Words &words, const unsigned char *values,
                      const double (*coefficients)[kRowPitch], int first, int keys) {
    for (int key = first; key < first + keys; key += 2) {
      double v[2][2];
#pragma unroll
      for (int k = 0; k < 2; ++k) {
        const uint32_t word = *reinterpret_cast<const uint32_t *>(values + (key + k) * kValuePitch);
        v[k][0] = words.lower(word);
        v[k][1] = words.upper(word);
      }
#pragma unroll
      for (int pair = 0; pair < kGroupPairs; ++pair) {
        const auto two = [&](int kind) {
          return *reinterpret_cast<const double2 *>(
              &coefficients[(kind - kOfError) * kGroupPairs + pair][key]);
        };
        const double2 error = two(kOfError), rescale = two(kOfRescale), mass = two(kOfMass);
#pragma unroll
        for (int i = 0; i < 2; ++i) {
          const double o = center[pair][i], p = replayed[pair][i];
          around[pair][i] = fma(error.x, fabs(v[0][i] - o), around[pair][i]);
          around[pair][i] = fma(error.y, fabs(v[1][i] - o), around[pair][i]);
          again[pair][i] += fabs(fma(rescale.x, v[0][i], -(mass.x * p)));
          again[pair][i] += fabs(fma(rescale.y, v[1][i], -(mass.y * p)));
        }
      }
    }
  }
};

__global__ void __launch_bounds__(kThreads, 2) sum_around(const __grid_constant__ GroupCall call) {
  extern __shared__ __align__(128) unsigned char shared[];
  auto &memory = *reinterpret_cast<AroundMemory *>(shared);
  SideLoop loop(call, true, kValuePitch, memory.side, shared + sizeof(AroundMemory));
  const auto coefficients = [&](int number) {
    load_coefficients(loop, number, kOfError, AroundMemory::kKinds, false,
                      memory.coefficients[number % 2]);
  };
  loop.start(coefficients);
  constexpr int kColumns = kGroupDim / 2, kShares = kThreads / kColumns;
  const int column = static_cast<int>(threadIdx.x) % kColumns;
  const int share = static_cast<int>(threadIdx.x) / kColumns;
  const int dims = call.tiers.base.dims;
  const auto group = static_cast<int>(&loop.group - call.groups);
  const double down = ldexp(1.0, -loop.decoder.exponent);
  AroundSums sums;
#pragma unroll
  for (int pair = 0; pair < kGroupPairs; ++pair)
#pragma unroll
    for (int i = 0; i < 2; ++i) {
      const int dim = 2 * column + i;
      const bool has = pair < loop.group.pairs && dim < dims;
      const int64_t at = (int64_t{group} * kGroupPairs + pair) * dims + dim;
      sums.center[pair][i] = has ? call.columns[at].mid * down : 0.0;
      sums.replayed[pair][i] = has ? call.columns[at].replayed.value * down : 0.0;
    }
  const Words words(call.tiers.base.kv_dtype == ASSAY_BF16);
  constexpr int kKeys = kTileKeys / kShares;
  for (int number = 0; number < loop.count(); ++number) {
    loop.turn_to(number, coefficients);
    sums.add(words, loop.tile(number) + 4 * column, memory.coefficients[number % 2], kKeys * share,
             kKeys);
  }
  // The shares' sums, where tiles were.
  __syncthreads();
  auto *parts = reinterpret_cast<double *>(loop.tiles);
  constexpr int kSums = kGroupPairs * 2 * kGroupDim;
  static_assert(kSums * kShares * sizeof(double) <= 2 * kTileKeys * kValuePitch);
#pragma unroll
  for (int pair = 0; pair < kGroupPairs; ++pair)
#pragma unroll
    for (int i = 0; i < 2; ++i) {
      double *to = parts + share * kSums + 2 * pair * kGroupDim + 2 * column + i;
      to[0] = sums.around[pair][i];
      to[kGroupDim] = sums.again[pair][i];
    }
  __syncthreads();
  const double unscale = ldexp(1.0, loop.decoder.exponent - kCoefficientScale);
  for (int at = static_cast<int>(threadIdx.x); at < kSums; at += kThreads) {
    const int pair = at / (2 * kGroupDim), kind = at / kGroupDim % 2, dim = at % kGroupDim;
    if (pair >= loop.group.pairs || dim >= dims) continue;
    double sum = 0.0;
    for (int of = 0; of < kShares; ++of)
      sum += parts[of * kSums + at];
    call.centered[(2 * call.unit_pair(loop.unit, pair) + kind) * dims + dim] = sum * unscale;
  }
}

} // namespace assay::oracle::device
