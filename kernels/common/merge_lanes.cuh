// SPDX-License-Identifier: Apache-2.0
// N-way merge of stored (normalised o, LSE) states by the lanes that share a row: each lane looks at
// its share of the LSEs, all sum their own components.
#pragma once

#include "kernels/arch/shuffle.cuh"
#include "kernels/arch/thread.cuh"
#include "kernels/common/row_output.cuh"

namespace assay::ASSAY_TARGET {

/// Un-normalised sum of states relative to the largest LSE, `m`.
template <class R>
struct MergedStates {
  R m, d, o[8];
};

/// Merges states 0 .. count - 1 in index order. kLanes (a power of two) neighbouring lanes work on
/// one row, each on its eight components; counts may differ between rows, but all lanes of the warp
/// take part. lse(i) is the LSE of state i, `scale` turns differences of LSEs into base-2 logits;
/// o(i, R (&)[8]) loads the lane's components and is called for no state of weight 0: o of an empty
/// state may be anything.
///
/// Two rounds of loads, however many lanes' worth of states: the LSEs, then eight o at a time.
template <int kLanes, class R, class LoadLse, class LoadO>
ASSAY_DEVICE MergedStates<R> merge_by_lanes(int count, R scale, LoadLse lse, LoadO o) {
  constexpr int kBatch = 8;
  const int lane = static_cast<int>(arch::lane_id()), first = lane & -kLanes, own = lane - first;
  const auto lse_or_none = [&](int i) { return i < count ? lse(i) : R(arch::neg_infinity()); };
  MergedStates<R> sum;
  const R front = lse_or_none(own); // the first chunk's is kept
  sum.m = front;
  for (int base = kLanes; arch::any(base < count); base += kLanes)
    sum.m = arch::max_num(sum.m, lse_or_none(base + own));
  ASSAY_UNROLL
  for (int mask = 1; mask < kLanes; mask *= 2)
    sum.m = arch::max_num(sum.m, arch::shfl_xor(sum.m, mask));
  sum.d = 0.0f;
  ASSAY_UNROLL
  for (int k = 0; k < 8; ++k)
    sum.o[k] = 0.0f;
  for (int base = 0; arch::any(base < count); base += kLanes) {
    const R weight = AttentionState<R, 1>::weight(base == 0 ? front : lse_or_none(base + own),
                                                  sum.m, scale);
    for (int next = 0; next < kLanes && arch::any(base + next < count); next += kBatch) {
      R weights[kBatch], part[kBatch][8];
      ASSAY_UNROLL
      for (int i = 0; i < kBatch; ++i) {
        weights[i] = arch::shfl_idx(weight, first + next + i);
        if (!(weights[i] == 0.0f)) o(base + next + i, part[i]);
      }
      ASSAY_UNROLL
      for (int i = 0; i < kBatch; ++i) {
        if (weights[i] == 0.0f) continue;
        sum.d += weights[i];
        ASSAY_UNROLL
        for (int k = 0; k < 8; ++k)
          sum.o[k] = arch::fma_rn(weights[i], part[i][k], sum.o[k]);
      }
    }
  }
  return sum;
}

} // namespace assay::ASSAY_TARGET
