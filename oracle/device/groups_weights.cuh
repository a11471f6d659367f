// SPDX-License-Identifier: Apache-2.0
// Internal: without a replay, the weights of a unit's keys, made while its values come.
#pragma once

#include "oracle/device/groups_scores.cuh"

namespace assay::oracle::device {

/** A thread has a pair of the group and a key of each tile. */
template <class Words>
struct TileWeights {
  const SideLoop<Words> &loop;
  const PairKey own;
  PairWork &pair;
  const SeenKeys seen;
  const bool present;
  WeightSums sums;
  Logit ahead; ///< of the tile that is weighed next

  __device__ explicit TileWeights(const SideLoop<Words> &of)
      : loop(of), pair(pair_of(of.call, of.group, own.index)),
        seen(seen_by(of.call, of.group, own.index)),
        present(own.index < of.group.pairs && pair.claim != 0) {
    fetch(0);
  }

  __device__ bool sees(int number) const {
    return present && number < loop.count() && seen(loop.position(number) + own.key);
  }
  __device__ int64_t slot(int number) const { return loop.slot(number, own.index) + own.key; }
  __device__ void fetch(int number) {
    if (sees(number)) ahead = logit_at(loop.call, slot(number));
  }

  /// The coefficients of a tile, as load_coefficients puts them; they are kept, too.
  __device__ void weigh(int number, double (*to)[kRowPitch]) {
    const Logit logit = ahead;
    fetch(number + 1);
    double weight = 0.0, error = 0.0;
    if (sees(number)) {
      KeyWeight key;
      sums.add(pair, logit, key);
      weight = key.weight * 0x1p800;
      error = key.weight * key.omega * 0x1p800;
      loop.call.kind(kOfWeight)[slot(number)] = weight;
      loop.call.kind(kOfError)[slot(number)] = error;
    }
    to[own.index][own.key] = weight;
    to[kGroupPairs + own.index][own.key] = error;
  }

  /// After the last tile: what the unit's keys come to, and in the first unit the sink.
  __device__ void store(double (*parts)[8]) {
    if (present && pair.sink != 0 && loop.unit == loop.group.first_unit && own.key == 0) {
      KeyWeight key;
      sums.add(pair, pair.sunk, key);
      pair.sunk_error = key.weight * key.omega;
    }
    const int warp = static_cast<int>(threadIdx.x) / 32, lane = static_cast<int>(threadIdx.x) % 32;
    const double all[8] = {over_warp(sums.z, SumOf{}),
                           over_warp(sums.error_mass, SumOf{}),
                           over_warp(sums.mean, SumOf{}),
                           over_warp(sums.low, SumOf{}),
                           over_warp(sums.weight_error, LargerOf{}),
                           over_warp(sums.log_omega, LargerOf{}),
                           over_warp(sums.worst, LargerOf{}),
                           over_warp(sums.vague != 0 ? 1.0 : 0.0, LargerOf{})};
#pragma unroll
    for (int i = 0; i < 8; ++i)
      if (lane == 0) parts[warp][i] = all[i];
    __syncthreads();
    if (static_cast<int>(threadIdx.x) >= loop.group.pairs) return;
    WeightSums both;
    for (const double(*of)[8] = parts + 2 * threadIdx.x; of < parts + 2 * threadIdx.x + 2; ++of) {
      const double(&p)[8] = *of;
      both.join({p[0], p[1], p[2], p[3], p[4], p[5], p[6], p[7] != 0.0});
    }
    loop.call.weights[loop.call.unit_pair(loop.unit, static_cast<int>(threadIdx.x))] = both;
  }
};

} // namespace assay::oracle::device
