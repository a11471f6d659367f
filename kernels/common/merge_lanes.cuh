// SPDX-License-Identifier: Apache-2.0
// N-way merge of stored (normalised o, LSE) states by the lanes that share a row: each lane looks
// at its share of the LSEs, all sum their own components.
#pragma once

#include "kernels/arch/shuffle.cuh"
#include "kernels/arch/thread.cuh"
#include "kernels/common/row_output.cuh"

namespace assay::ASSAY_TARGET {

/// Un-normalised sum of states relative to the largest LSE, `m`.
template <class R>
struct MergedStates {
  R m, d, o[8];
  int weighted, last; // states with a weight; the last of them

  static ASSAY_DEVICE MergedStates none() {
    MergedStates empty;
    empty.m = arch::neg_infinity();
    empty.d = 0.0f;
    empty.weighted = 0;
    empty.last = -1;
    ASSAY_UNROLL
    for (int k = 0; k < 8; ++k)
      empty.o[k] = 0.0f;
    return empty;
  }

  template <class E>
  ASSAY_DEVICE void add(R weight, const Pack8<E> &state, int index) {
    R values[8];
    state.unpack(values);
    d += weight;
    ++weighted;
    last = index;
    ASSAY_UNROLL
    for (int k = 0; k < 8; ++k)
      o[k] = arch::fma_rn(weight, values[k], o[k]);
  }
};

/// Merges states 0 .. count - 1 in index order. kLanes (a power of two) neighbouring lanes work on
/// one row, each on its eight components; counts may differ between rows, but all lanes of the warp
/// take part. lse(i) is the LSE of state i, `scale` turns differences of LSEs into base-2 logits;
/// o(i) is a Pack8 of the lane's components, called only where readable(i). What o holds does not
/// count where the weight is 0, as that of an empty state.
///
/// The LSEs of as many states as lanes and the first kBatch o are loaded at once; later o kBatch at
/// a time. meet(m) is the largest LSE of all who share the row, where those of these lanes is m.
template <int kLanes, class R, int kBatch, class LoadLse, class LoadO, class Readable, class Meet>
ASSAY_DEVICE MergedStates<R> merge_by_lanes(int count, R scale, LoadLse lse, LoadO o,
                                            Readable readable, Meet meet) {
  static_assert(kBatch <= kLanes);
  const int lane = static_cast<int>(arch::lane_id()), first = lane & -kLanes, own = lane - first;
  const auto lse_or_none = [&](int i) { return i < count ? lse(i) : R(arch::neg_infinity()); };
  decltype(o(0)) part[kBatch];
  const auto load = [&](int base) {
    ASSAY_UNROLL
    for (int i = 0; i < kBatch; ++i)
      if (base + i < count && readable(base + i)) part[i] = o(base + i);
  };
  MergedStates<R> sum = MergedStates<R>::none();
  const R front = lse_or_none(own); // the first chunk's is kept
  load(0);
  sum.m = front;
  for (int base = kLanes; arch::any(base < count); base += kLanes)
    sum.m = arch::max_num(sum.m, lse_or_none(base + own));
  ASSAY_UNROLL
  for (int mask = 1; mask < kLanes; mask *= 2)
    sum.m = arch::max_num(sum.m, arch::shfl_xor(sum.m, mask));
  sum.m = meet(arch::shfl_idx(sum.m, first)); // equals may differ in what max does not compare
  for (int base = 0; arch::any(base < count); base += kLanes) {
    const R weight =
        AttentionState<R, 1>::weight(base == 0 ? front : lse_or_none(base + own), sum.m, scale);
    for (int next = 0; next < kLanes && arch::any(base + next < count); next += kBatch) {
      if (base + next > 0) load(base + next);
      ASSAY_UNROLL
      for (int i = 0; i < kBatch; ++i) {
        const R share = arch::shfl_idx(weight, first + next + i);
        if (!(share == 0.0f)) sum.add(share, part[i], base + next + i);
      }
    }
  }
  return sum;
}

} // namespace assay::ASSAY_TARGET
