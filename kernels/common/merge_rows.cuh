// SPDX-License-Identifier: Apache-2.0
// N-way merge of stored (normalised o, LSE) states, one slice of eight components per thread.
#pragma once

#include "kernels/common/row_output.cuh"

namespace assay::ASSAY_TARGET {

/// Loads the o of kBatch states from `first` on; past the last one state 0 stands in. `o(i, R
/// (&)[8])` loads state i. Nothing stands between the loads, so that all are in flight together (a
/// dependent load is 0.6 us).
template <int kBatch, class R, class LoadO>
ASSAY_DEVICE void load_states(R (&part)[kBatch][8], int first, int count, LoadO o) {
  ASSAY_UNROLL
  for (int i = 0; i < kBatch; ++i)
    o(first + i < count ? first + i : 0, part[i]);
}

/// Sums states 0 .. count - 1 relative to `lse_max`, in that order. `lse(i)` is the LSE of state i,
/// `scale` turns differences of LSEs into base-2 logits (1 or log2 e).
template <int kBatch, class R, class LoadLse, class LoadO>
ASSAY_DEVICE auto sum_states(int count, R lse_max, float scale, LoadLse lse, LoadO o) {
  using RowSlice = SliceOf<R>;
  RowSlice sum = RowSlice::identity();
  for (int base = 0; base < count; base += kBatch) {
    R part[kBatch][8];
    load_states(part, base, count, o);
    ASSAY_UNROLL
    for (int i = 0; i < kBatch; ++i) {
      const int state = base + i;
      if (state >= count) break;
      // An empty state has weight 0 and maybe a stand-in for o: finite times 0 would do, but o may
      // be infinite in a row that overflowed.
      const R weight = RowSlice::weight(lse(state), lse_max, scale);
      if (weight == 0.0f) continue;
      sum.d += weight;
      ASSAY_UNROLL
      for (int k = 0; k < 8; ++k)
        sum.o[k] = arch::fma_rn(weight, part[i][k], sum.o[k]);
    }
  }
  sum.m = lse_max;
  return sum;
}

template <class R>
struct MergedSlice {
  R o[8];   // normalised
  R lse;    // unit of the inputs
  int only; // index of the single non-empty state, or -1: its bits then are the result
};

/// Merges states 0 .. count - 1 in index order. o of an empty state (lse = -inf) is never loaded,
/// so stale or NaN memory behind it cannot leak. `unit` is the inverse of `scale` (1 or ln 2).
/// Two passes, maximum first: no rescaling, and no load waits for another.
template <int kBatch = 8, class LoadLse, class LoadO>
ASSAY_DEVICE auto merge_rows(int count, float scale, float unit, LoadLse lse, LoadO o) {
  using R = decltype(lse(0));
  MergedSlice<R> result;
  R lse_max = arch::neg_infinity();
  int non_empty = 0;
  result.only = -1;
  ASSAY_UNROLL_BY(8)
  for (int i = 0; i < count; ++i) {
    const R l = lse(i);
    lse_max = arch::max_num(lse_max, l);
    if (!arch::is_neg_infinity(l)) {
      ++non_empty;
      result.only = i;
    }
  }
  if (non_empty <= 1) {
    result.lse = lse_max;
    ASSAY_UNROLL
    for (int k = 0; k < 8; ++k)
      result.o[k] = 0.0f;
    if (non_empty == 1) {
      result.lse = lse(result.only);
      o(result.only, result.o);
    }
    return result;
  }
  // Stands in for states that must not be loaded, so that no branch separates the loads.
  const int any_non_empty = result.only;
  result.only = -1;
  const auto load = [&](int i, R(&part)[8]) {
    o(arch::is_neg_infinity(lse(i)) ? any_non_empty : i, part);
  };
  auto sum = sum_states<kBatch>(count, lse_max, scale, lse, load);
  const R log2_mass = arch::log2_approx(sum.d);
  result.lse = lse_max + (unit == 1.0f ? log2_mass : R(log2_mass * unit));
  sum.normalize();
  ASSAY_UNROLL
  for (int k = 0; k < 8; ++k)
    result.o[k] = sum.o[k];
  return result;
}

} // namespace assay::ASSAY_TARGET
