// SPDX-License-Identifier: Apache-2.0
// Internal: weighted sums over the values of a tile, held by the lanes as an MMA gives them; and
// sums over a block.
#pragma once

#include "oracle/device/unit.cuh"

namespace assay::oracle::device {

/// Fragments of a warp: components 16 g + 2 column + side of the groups g = warp, warp + 8.
using Fragments = double[kMaxDim / 16 / kWarps][2][2];

/** sums += weights V, or weights |V|. `weights`: [pairs, keys] times 2^kWeightScale. */
template <int kPairs>
__device__ inline void weigh_values(const TileShape &shape, const Decoder &decoder,
                                    const double (*weights)[UnitMemory<kPairs>::kPitch],
                                    const unsigned char *values, bool magnitudes, Fragments &sums) {
  const int warp = static_cast<int>(threadIdx.x) / 32, lane = static_cast<int>(threadIdx.x) % 32;
  const int pair = lane / 4;
#pragma unroll
  for (int at = 0; at < kMaxDim / 16 / kWarps; ++at) {
    const int group = warp + kWarps * at;
    if (group * 16 >= shape.v_dims) break;
    const unsigned char *column = values + 32 * group + 4 * (lane / 4);
#pragma unroll
    for (int s = 0; s < kTileKeys / 4; ++s) {
      const int key = 4 * s + lane % 4;
      const double weight = weights[pair % kPairs][key];
      const uint32_t word = *reinterpret_cast<const uint32_t *>(column + key * shape.v_pitch);
#pragma unroll
      for (int side = 0; side < 2; ++side) {
        const uint32_t top = side ? word : word << 16;
        const double size = decoder.magnitude(top);
        multiply(sums[at][side], weight, magnitudes ? size : Decoder::with_sign(size, top));
      }
    }
  }
}

/// Calls take(pair, component, sum) for what the lane holds of a unit's pairs.
template <class Take>
__device__ inline void each_sum(const Fragments &sums, int pairs, int dims, Take take) {
  const int warp = static_cast<int>(threadIdx.x) / 32, lane = static_cast<int>(threadIdx.x) % 32;
  if (lane / 4 >= pairs) return;
#pragma unroll
  for (int at = 0; at < kMaxDim / 16 / kWarps; ++at)
#pragma unroll
    for (int side = 0; side < 2; ++side)
#pragma unroll
      for (int e = 0; e < 2; ++e) {
        const int dim = 16 * (warp + kWarps * at) + 2 * (lane % 4 * 2 + e) + side;
        if (dim < dims) take(lane / 4, dim, sums[at][side][e]);
      }
}

/** Joins a number of every lane over the block, for its pair; row `slot` of memory.reduced. */
template <int kPairs, class Join>
__device__ inline void over_block(UnitMemory<kPairs> &memory, const LaneKeys<kPairs> &lane,
                                  int slot, double x, Join join) {
  x = over_lanes<kPairs>(x, join);
  if (lane.lane % 4 == 0 && lane.lane < kPairs * 4) memory.reduced[lane.warp][lane.pair][slot] = x;
}
template <int kPairs, class Join>
__device__ inline double joined(const UnitMemory<kPairs> &memory, int pair, int slot, Join join) {
  double x = memory.reduced[0][pair][slot];
  for (int warp = 1; warp < kWarps; ++warp)
    x = join(x, memory.reduced[warp][pair][slot]);
  return x;
}

} // namespace assay::oracle::device
