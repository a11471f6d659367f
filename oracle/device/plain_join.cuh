// SPDX-License-Identifier: Apache-2.0
// Internal: what the plain pass comes to. A pair that it says too little of is left to both passes.
#pragma once

#include "oracle/device/outputs.cuh"

namespace assay::oracle::device {

/** A pair behind the plain pass. */
struct PlainRow {
  PairEnd end;
  OmegaRow common;
  double shared;      ///< ln of what the row's keys share in 1 + omega, on the scale of x_max
  double by_distance; ///< in ln, a unit of logits
  double rest;        ///< of the weights, what may be flushed
  int plain;
};

/// On the scale of the row: e^shared of a unit's keys, whose distances are from the unit's top.
struct PlainUnit {
  double factor;   ///< of its weights
  double up, more; ///< e^shared, and that less one
  double lost;     ///< of a sum in fp32, relative to the sum of its terms' magnitudes

  __device__ PlainUnit(const PlainRow &row, const PlainSums &sums, int keys) {
    factor = exp2(sums.top - row.end.row.x_max);
    const double y =
        fmax(row.shared + row.by_distance * (row.end.row.x_max - sums.top) + row.common.up, 0.0);
    more = fast_expm1(y);
    up = 1.0 + more;
    lost = lost_of(keys);
  }
};

/// Of a thread: what a pair's keys come to.
__device__ inline void join_plain(const Call &call, const PairUnits &units, PlainRow &out) {
  RowNumbers &row = out.end.row;
  row = RowNumbers{};
  bool plain = units.pair.begin < units.pair.end && !has_sink(call, units.pair.head);
  double above = -INFINITY, below = INFINITY, x_abs = 0.0, error = 0.0, query_max = 0.0;
  for (int chunk = 0; chunk < units.chunks; ++chunk) {
    const PlainSums &part = call.plain_sums[units.at(chunk)];
    plain = plain && part.plain != 0;
    query_max = fmax(query_max, part.query_max);
    if (part.above == -INFINITY) continue; // it sees none of the keys
    plain = plain && part.above < 40.0f;
    // A sum in fp32 rounds what it takes up.
    above = fmax(above, part.top + part.above);
    below = fmin(below, part.top + part.below - fabs(part.below) * 0x1p-22);
    x_abs = fmax(x_abs, part.x_abs);
    error = fmax(error, part.x_error);
  }
  out.plain = 0;
  if (!plain || !(x_abs < 0x1p18) || !(error < 0x1p-4)) return;
  start_numbers(call, units.pair, query_max, row);
  row.x_max = above;
  row.x_abs = x_abs + error;
  row.x_error_max = error;
  if (bound_sums(row) != NoClaim::kNone) return;
  // A key is never subnormal in P's format, whatever becomes of it: its distance is at most this.
  const double range = above - below;
  if (call.subnormal != 0 && !(exp2(-range) * 0.95 > row.model.p_normal * subnormal_slack(row)))
    return;
  out.common = omega_row(row);
  const PlainOmega omega(row);
  out.shared = omega.shared(row, out.common);
  out.by_distance = kLn2 * kSlack * omega.by_distance;
  double mean = 0.0, low = 0.0;
  for (int chunk = 0; chunk < units.chunks; ++chunk) {
    const PlainSums &part = call.plain_sums[units.at(chunk)];
    if (part.above == -INFINITY) continue;
    const PlainUnit unit(out, part, 0);
    row.z += part.z * unit.factor;
    mean += (unit.up * part.mean + unit.more * part.z) * unit.factor;
    low += part.low * unit.factor / unit.up;
  }
  // Those below 2^-60 of the largest may be flushed.
  out.rest = range > 60.0 ? static_cast<double>(row.facts.keys) * 0x1p-59 : 0.0;
  mean = (mean + out.rest) * kSlack;
  low = (low * exp(out.common.down + out.common.up) - out.rest) * kShrink;
  out.end.mean = mean;
  row.omega_mean = mean / row.z * kSlack;
  row.mass_low = low / row.z / kSlack;
  row.log_omega_max = INFINITY; // its mean is below it
  // The radius of a logit is a part of its error, the larger of two at most.
  const double dot = row.model.dot;
  const double radius = error * fmax(call.head_dim / dot, 8.0 / dot) * 0x1p-51;
  out.end.worst = radius + 4 * x_abs * 0x1p-53 + 4 * kExp2Error;
  row.weight_error = fast_expm1(kLn2 * (radius + 4 * x_abs * 0x1p-53)) + kExp2Error;
  row.mass_error = row.weight_error * kSlack;
  row.coarse = !(row.weight_error < 0x1p-20);
  row.facts.v_subnormal = call.kv_dtype == ASSAY_BF16;
  out.end.tail = tail_errors(row.model, row.shape);
  out.plain = !row.coarse && row.omega_mean < 0x1p-6 && row.mass_low > 0.5;
}

/// Sums over the keys for one component; `loose`: what they may have too much of the centered sum.
__device__ inline ColumnSums plain_column(const Call &call, const PairUnits &units,
                                          const PlainRow &row, int dim, double *loose) {
  const double center = static_cast<double>(__bfloat162float(plain_center(call, units.pair, dim)));
  ColumnSums sums{};
  double largest = 0.0, lost = 0.0;
  for (int chunk = 0; chunk < units.chunks; ++chunk) {
    const PlainSums &part = call.plain_sums[units.at(chunk)];
    if (part.above == -INFINITY) continue;
    const PlainComponent &of = call.plain_components[units.at(chunk) * call.dims + dim];
    const PlainUnit unit(row, part, units.keys);
    const double magnitude = of.magnitude * (1.0 + unit.lost);
    // |v - c| = 2 max(v, c) - v - c.
    const double size = magnitude + fabs(center) * part.z;
    const double plain = fmax(0.0, 2.0 * of.weight_around - of.value - center * part.z);
    const double error = fmax(0.0, 2.0 * of.error_around - of.error - center * part.mean);
    lost += (unit.more * 2.0 * size + unit.up * 3.0 * part.mean * (of.largest + fabs(center))) *
            unit.lost * unit.factor;
    sums.value += of.value * unit.factor;
    sums.magnitude += magnitude * unit.up * unit.factor;
    sums.centered += (unit.up * error + unit.more * plain) * unit.factor;
    largest = fmax(largest, static_cast<double>(of.largest));
  }
  lost += row.end.mean * fabs(center - sums.value / row.end.row.z) + row.rest * largest;
  *loose = 2.0 * lost;
  sums.magnitude = sums.magnitude * kSlack + row.rest * largest;
  sums.centered = (sums.centered + lost) * kSlack;
  sums.v_min = -largest;
  sums.v_max = largest;
  return sums;
}

/** Behind the plain pass, a block a pair: every output against its bound, or the pair is left. */
template <int kPairs>
__global__ void __launch_bounds__(kFinishThreads) decide_plain(const __grid_constant__ Call call) {
  __shared__ PlainRow row;
  const PairUnits units = units_of(call, blockIdx.x, kPairs);
  const Pair &pair = units.pair;
  const int dim = static_cast<int>(threadIdx.x);
  if (dim == 0) join_plain(call, units, row);
  __syncthreads();
  Tally tally;
  bool plain = row.plain != 0;
  Enclosure exact{};
  double bound = 0.0;
  if (plain) {
    const RowNumbers &numbers = row.end.row;
    double loose = 0.0;
    const ColumnSums sums = plain_column(call, units, row, dim, &loose);
    const double mean = sums.magnitude / numbers.z;
    exact = enclose_column(numbers, sums);
    const BudgetTerms budget = budget_of(numbers, row.end.tail, sums, exact);
    const double scale = fabs(static_cast<double>(numbers.facts.features.v_scale));
    loose *= scale / (numbers.z * numbers.mass_low);
    bound = below_step(numbers, exact, budget);
    plain = (sums.v_max == 0.0 || (mean > 0x1p-60 && sums.v_max < 0x1p60)) &&
            loose <= 0x1p-11 * (budget.total - budget.output_rounding) && !budget.overflow_possible;
  }
  const bool all = __syncthreads_and(plain) != 0;
  if (dim == 0) call.redo[pair.number] = !all;
  if (!all) return;
  if (dim == 0) atomicAdd(&call.totals->one_pass, 1ULL);
  const int64_t o_at = call.o_at[pair.row] + pair.head * call.o_stride_head;
  tally.count(ratio_inside(load_output(call, o_at + dim), exact, bound), tally.worst);
  export_element(call, pair, dim, exact, bound);
  if (dim == 0 && call.lse != nullptr) {
    double lse2 = 0.0;
    exact = lse_enclosure(row.end.row, row.end.worst, &lse2);
    bound = lse_budget(row.end.row, lse2);
    tally.count(ratio_inside(call.lse[call.lse_at[pair.row] + pair.head * call.lse_stride_head],
                             exact, bound),
                tally.worst_lse);
    export_element(call, pair, call.dims, exact, bound);
  }
  report(call, pair, tally, static_cast<unsigned long long>(call.dims + (call.lse != nullptr)));
}

} // namespace assay::oracle::device
