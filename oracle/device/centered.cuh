// SPDX-License-Identifier: Apache-2.0
// Internal: sums of |v - o| and the range of v, in fp32 over a few tiles; and what a unit leaves of
// its components.
#pragma once

#include "oracle/device/fragments.cuh"

namespace assay::oracle::device {

inline constexpr int kFoldTiles = 4; ///< whose sums are taken in fp32

/// A thread's components 2 i and 2 i + 1, of its share of a tile's keys.
template <int kPairs>
struct Centered {
  double sum[kPairs][2] = {};
  float part[kPairs][2] = {}; ///< of the last tiles, not yet in `sum`
  float least[kPairs][2], most[kPairs][2], center[kPairs][2];
  int column, first_key, keys; ///< keys 0: the thread has none

  __device__ Centered(const TileShape &shape) {
    const int columns = shape.v_dims / 2, thread = static_cast<int>(threadIdx.x);
    int groups = 1;
    while (2 * groups * columns <= kThreads)
      groups *= 2;
    column = thread % columns;
    keys = thread / columns < groups ? kTileKeys / groups : 0;
    first_key = thread / columns * keys;
    for (int pair = 0; pair < kPairs; ++pair)
      for (int i = 0; i < 2; ++i) {
        least[pair][i] = INFINITY;
        most[pair][i] = -INFINITY;
        center[pair][i] = 0.0f;
      }
  }

  __device__ void fold() {
#pragma unroll
    for (int pair = 0; pair < kPairs; ++pair)
#pragma unroll
      for (int i = 0; i < 2; ++i) {
        sum[pair][i] += static_cast<double>(part[pair][i]);
        part[pair][i] = 0.0f;
      }
  }

  template <bool kBf16>
  __device__ void add(const TileShape &shape, const UnitMemory<kPairs> &memory,
                      const unsigned char *values, int position, int pairs, bool all_seen) {
    float low[2] = {INFINITY, INFINITY}, high[2] = {-INFINITY, -INFINITY};
    for (int key = first_key; key < first_key + keys; ++key) {
      const uint32_t word =
          *reinterpret_cast<const uint32_t *>(values + key * shape.v_pitch + 4 * column);
      const float v[2] = {Decoder::number<kBf16>(word << 16), Decoder::number<kBf16>(word)};
#pragma unroll
      for (int i = 0; i < 2; ++i) {
        low[i] = fminf(low[i], v[i]);
        high[i] = fmaxf(high[i], v[i]);
#pragma unroll
        for (int pair = 0; pair < kPairs; ++pair)
          part[pair][i] += memory.centered[key][pair] * fabsf(v[i] - center[pair][i]);
      }
      if (all_seen) continue;
#pragma unroll
      for (int pair = 0; pair < kPairs; ++pair) {
        const Pair &row = memory.pairs[pair];
        if (pair >= pairs || position + key < row.begin || position + key >= row.end) continue;
#pragma unroll
        for (int i = 0; i < 2; ++i) {
          least[pair][i] = fminf(least[pair][i], v[i]);
          most[pair][i] = fmaxf(most[pair][i], v[i]);
        }
      }
    }
#pragma unroll
    for (int pair = 0; pair < kPairs; ++pair)
#pragma unroll
      for (int i = 0; i < 2; ++i) {
        if (!all_seen) continue;
        least[pair][i] = fminf(least[pair][i], low[i]);
        most[pair][i] = fmaxf(most[pair][i], high[i]);
      }
  }
};

/// `shared`: memory that nobody needs any more, for the sums of the threads' shares of keys.
template <int kPairs>
__device__ inline void store_components(const Call &call, const Unit &unit, const TileShape &shape,
                                        const Decoder &decoder, const Centered<kPairs> &centered,
                                        const Fragments &magnitudes, const Fragments &subnormal,
                                        unsigned char *shared) {
  auto *sums = reinterpret_cast<double *>(shared);
  auto *least = reinterpret_cast<float *>(sums + kPairs * shape.v_dims);
  float *most = least + kPairs * shape.v_dims;
  for (int first = 0; first < kTileKeys; first += max(centered.keys, 1)) {
    if (centered.keys > 0 && centered.first_key == first) {
#pragma unroll
      for (int pair = 0; pair < kPairs; ++pair)
#pragma unroll
        for (int i = 0; i < 2; ++i) {
          const int at = pair * shape.v_dims + 2 * centered.column + i;
          sums[at] = centered.sum[pair][i] + (first > 0 ? sums[at] : 0.0);
          least[at] = fminf(centered.least[pair][i], first > 0 ? least[at] : INFINITY);
          most[at] = fmaxf(centered.most[pair][i], first > 0 ? most[at] : -INFINITY);
        }
    }
    __syncthreads();
  }
  ComponentSums *out = call.components + unit.id * kPairs * call.dims;
  for (int at = static_cast<int>(threadIdx.x); at < unit.pairs * call.dims; at += kThreads) {
    const int from = at / call.dims * shape.v_dims + at % call.dims;
    out[at].centered = sums[from];
    out[at].v_min = least[from];
    out[at].v_max = most[from];
  }
  const double unscale = ldexp(1.0, decoder.exponent - kWeightScale);
  each_sum(magnitudes, unit.pairs, call.dims, [&](int pair, int dim, double sum) {
    out[pair * call.dims + dim].magnitude = sum * unscale;
  });
  each_sum(subnormal, unit.pairs, call.dims, [&](int pair, int dim, double sum) {
    out[pair * call.dims + dim].subnormal = sum * unscale;
  });
}

} // namespace assay::oracle::device
