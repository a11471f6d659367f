// SPDX-License-Identifier: Apache-2.0
// Merges n stored states (normalised o, LSE) by the lanes that share a row. Each lane looks at some
// of the LSEs, and sums its own components of all states.
#pragma once

#include "kernels/arch/shuffle.cuh"
#include "kernels/arch/thread.cuh"
#include "kernels/common/row_output.cuh"

namespace assay::ASSAY_TARGET {

/// A sum of states, relative to the largest LSE `m` and not normalised.
template <class R>
struct MergedStates {
  R m, d, o[8];
  int weighted, last; // how many states have a weight; the last of them

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

/// Merges states 0 .. count - 1 in the order of their indices. kLanes (a power of two) neighbouring
/// lanes work on one row, each on eight components. Rows may have different counts, but all lanes
/// of the warp take part.
///   lse(i)       the LSE of state i
///   scale        turns differences of LSEs into base-2 logits
///   o(i)         this lane's components of state i, as a Pack8
///   readable(i)  whether o(i) may be called
///   meet(m)      the largest LSE of the row, where m is the largest that these kLanes lanes have
///                found. More than these lanes may work on the row; `meet` asks the others
/// A state of weight 0 does not count, whatever its o holds: an empty state is one.
///
/// The LSEs of the first kLanes states and the o of the first kBatch are loaded at once, the later
/// o kBatch at a time.
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
  const R front = lse_or_none(own); // LSE of one of the first kLanes states; it is used twice
  load(0);
  sum.m = front;
  for (int base = kLanes; arch::any(base < count); base += kLanes)
    sum.m = arch::max_num(sum.m, lse_or_none(base + own));
  ASSAY_UNROLL
  for (int mask = 1; mask < kLanes; mask *= 2)
    sum.m = arch::max_num(sum.m, arch::shfl_xor(sum.m, mask));
  sum.m =
      meet(arch::shfl_idx(sum.m, first)); // one lane's m for all: equal numbers may have other bits
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
