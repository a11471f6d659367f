// SPDX-License-Identifier: Apache-2.0
// Internal: every output against its bound.
#pragma once

#include "oracle/device/join.cuh"
#include "oracle/device/plain_tile.cuh"

namespace assay::oracle::device {

/** The total of a budget but for one thing: the output's rounding is that of a budget 1.001 times
    smaller. A step of that rounding which lies between would widen the budget by more than sums in
    16 bits are off. What only the wider one lets pass is for the host to say. */
__device__ inline double below_step(const RowNumbers &row, const Enclosure &o,
                                    const BudgetTerms &t) {
  const double sum =
      t.weights + t.p_rounding + t.accumulation + t.normalisation + t.merge + t.flush;
  const Format &format = row.facts.output;
  return t.total - half_ulp(format, (fabs(o.mid) + o.rad + sum) * kSlack) +
         half_ulp(format, fabs(o.mid) - o.rad + sum / 1.001);
}

/** The second pass sums in fp32 over four tiles: 256 additions at most, a difference and a product,
    2^-24 each. The centre is rounded to fp32 there. `loose`: what the centered sum may have too much
    of for that. */
__device__ inline ColumnSums column_of(const Call &call, const PairUnits &units,
                                       const RowNumbers &row, double mean, int dim, double &loose) {
  const double center = call.center[units.pair.number * call.dims + dim];
  ColumnSums sums{center * row.z, 0.0, 0.0, 0.0, INFINITY, -INFINITY};
  for (int chunk = 0; chunk < units.chunks; ++chunk) {
    const ComponentSums &part = call.components[units.at(chunk) * call.dims + dim];
    sums.magnitude += part.magnitude;
    sums.centered += part.centered;
    sums.subnormal += part.subnormal;
    sums.v_min = fmin(sums.v_min, static_cast<double>(part.v_min));
    sums.v_max = fmax(sums.v_max, static_cast<double>(part.v_max));
  }
  if (has_sink(call, units.pair.head)) { // its value is zero
    sums.v_min = fmin(sums.v_min, 0.0);
    sums.v_max = fmax(sums.v_max, 0.0);
    const Logit logit = sink_logit(row.facts.features);
    KeyWeight key;
    weigh_key(row.x_max, logit, key);
    bound_key(row, omega_row(row), logit, key);
    sums.centered += key.weight * key.omega * fabs(center);
  }
  loose = 2.0 * (sums.centered * 0x1p-15 + mean * fabs(center) * 0x1p-23);
  sums.centered = sums.centered * (1.0 + 0x1p-15) + mean * fabs(center) * 0x1p-23;
  return sums;
}

/// Whether `loose` of a centered sum is little of the bound. Yes where convexity alone is that.
__device__ inline bool is_sharp(const RowNumbers &row, double loose, const BudgetTerms &budget) {
  const double sum = row.z * row.mass_low;
  if (row.coarse || row.vague || !(sum > 0.0)) return true;
  const RowFeatures &features = row.facts.features;
  const double scale = fabs(static_cast<double>(features.v_scale) / features.o_scale);
  return loose * scale <= 0x1p-11 * budget.total * sum;
}

/// What the threads of a block count.
struct Tally {
  unsigned long long claimed = 0, no_claim = 0;
  double worst = 0.0, worst_lse = 0.0;
  bool open = false;

  __device__ void count(double ratio, double &worst_of) {
    ++claimed;
    if (ratio < INFINITY)
      worst_of = fmax(worst_of, ratio);
    else
      open = true;
  }
};

__device__ inline void report(const Call &call, const Pair &pair, const Tally &tally,
                              unsigned long long elements) {
  // Ratios are not negative: their bits are ordered as they are.
  const auto bits = [](double x) {
    return static_cast<unsigned long long>(__double_as_longlong(x));
  };
  __shared__ unsigned long long claimed, no_claim, worst, worst_lse;
  if (threadIdx.x == 0) claimed = no_claim = worst = worst_lse = 0;
  const bool open = __syncthreads_or(tally.open) != 0;
  atomicAdd(&claimed, tally.claimed);
  atomicAdd(&no_claim, tally.no_claim);
  atomicMax(&worst, bits(tally.worst));
  atomicMax(&worst_lse, bits(tally.worst_lse));
  __syncthreads();
  if (threadIdx.x != 0) return;
  atomicAdd(&call.totals->elements, elements);
  atomicAdd(&call.totals->claimed, claimed);
  if (no_claim > 0) atomicAdd(&call.totals->no_claim, no_claim);
  if (worst > call.totals->worst) atomicMax(&call.totals->worst, worst);
  if (worst_lse > call.totals->worst_lse) atomicMax(&call.totals->worst_lse, worst_lse);
  if (!open) return;
  const auto at = static_cast<long long>(atomicAdd(&call.totals->open_rows, 1ULL));
  if (at < call.max_open) call.open[at] = {pair.row, pair.head};
}

__device__ inline void export_element(const Call &call, const Pair &pair, int dim,
                                      const Enclosure &exact, double bound) {
  if (call.elements == nullptr) return;
  const int64_t row = int64_t{pair.row} * call.num_heads + pair.head;
  call.elements[row * (call.dims + 1) + dim] = {exact.mid, exact.rad, bound};
}

/** Behind the second pass, a block a pair: every output against its bound. What might be more than
    1.001 times the host's decides nothing: the row is left open. */
template <int kPairs>
__global__ void __launch_bounds__(kFinishThreads)
    decide_outputs(const __grid_constant__ Call call) {
  const PairUnits units = units_of(call, blockIdx.x, kPairs);
  const Pair &pair = units.pair;
  if (!left(call, pair)) return;
  const PairState state = call.pairs[pair.number];
  const int64_t o_at = call.o_at[pair.row] + pair.head * call.o_stride_head;
  const bool has_lse = call.lse != nullptr;
  const float lse =
      has_lse ? call.lse[call.lse_at[pair.row] + pair.head * call.lse_stride_head] : 0.0f;
  const bool first = threadIdx.x == 0;
  const auto elements = static_cast<unsigned long long>(call.dims + has_lse);
  Tally tally;
  const int thread = static_cast<int>(threadIdx.x);
  if (pair.begin == pair.end) {
    // Without a sink O is 0 and the LSE what the call says; else the host looks.
    const bool plain = !has_sink(call, pair.head) && call.empty_lse == 0;
    for (int dim = thread; dim < call.dims; dim += kFinishThreads)
      tally.count(plain && load_output(call, o_at + dim) == 0.0f ? 0.0 : INFINITY, tally.worst);
    if (first && has_lse) tally.count(plain && lse == -INFINITY ? 0.0 : INFINITY, tally.worst_lse);
    return report(call, pair, tally, elements);
  }
  if (state.no_claim != 0) {
    if (first) tally.no_claim = elements;
    return report(call, pair, tally, elements);
  }
  const PairEnd &end = call.ends[pair.number];
  const RowNumbers &row = end.row;
  for (int dim = thread; dim < call.dims; dim += kFinishThreads) {
    double loose = 0.0;
    const ColumnSums sums = column_of(call, units, row, end.mean, dim, loose);
    Enclosure exact = enclose_column(row, sums);
    const BudgetTerms budget = budget_of(row, end.tail, sums, exact);
    if (budget.overflow_possible) {
      ++tally.no_claim;
      continue;
    }
    const double bound = below_step(row, exact, budget);
    const bool sharp = state.rough == 0 && is_sharp(row, loose, budget);
    tally.count(sharp ? ratio_inside(load_output(call, o_at + dim), exact, bound) : INFINITY,
                tally.worst);
    export_element(call, pair, dim, exact, bound);
  }
  if (first && has_lse) {
    double lse2 = 0.0;
    const Enclosure exact = lse_enclosure(row, end.worst, &lse2);
    const double bound = lse_budget(row, lse2);
    tally.count(state.rough == 0 ? ratio_inside(lse, exact, bound) : INFINITY, tally.worst_lse);
    export_element(call, pair, call.dims, exact, bound);
  }
  report(call, pair, tally, elements);
}

} // namespace assay::oracle::device
