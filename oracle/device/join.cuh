// SPDX-License-Identifier: Apache-2.0
// Internal: what the units of a pair come to, between the passes and behind them.
#pragma once

#include "oracle/device/pair.cuh"

namespace assay::oracle::device {

inline constexpr int kFinishThreads = 128, kRowThreads = 32;

/** A block's pair: its list's units, one a chunk of keys. */
struct PairUnits {
  Pair pair;
  int chunks, keys;    ///< keys of a chunk
  int64_t first, step; ///< of the pair's sums in those of the units

  __device__ int64_t at(int chunk) const { return first + chunk * step; }
};

/// Pair p of the launch has row p / heads and head p % heads.
__device__ inline PairUnits units_of(const Call &call, unsigned pair, int pairs_of_unit) {
  const auto local = static_cast<int>(pair / static_cast<unsigned>(call.num_heads));
  const int head = static_cast<int>(pair % static_cast<unsigned>(call.num_heads));
  int low = 0, high = call.num_lists - 1;
  while (low < high) {
    const int middle = (low + high + 1) / 2;
    if (call.lists[middle].first_row <= local)
      low = middle;
    else
      high = middle - 1;
  }
  const ListWork work = call.lists[low];
  const int group = call.num_heads / call.num_kv_heads, kv_head = head / group;
  const int index = (local - work.first_row) * group + head % group;
  PairUnits units{};
  units.pair = pair_of(call, work, kv_head, index);
  units.chunks = work.chunks;
  units.keys = work.chunk;
  const int64_t unit = work.first_unit + int64_t{kv_head} * work.chunks * work.blocks;
  units.first = (unit + index / pairs_of_unit) * pairs_of_unit + index % pairs_of_unit;
  units.step = int64_t{work.blocks} * pairs_of_unit;
  return units;
}

/** At most mass_low of a row: of the keys that lie within 2^-64 of the largest. `low`: their
    weights, as low as the errors of their scores may make them, over z. */
__device__ inline double mass_floor(const RowNumbers &row, double low) {
  const double below = 64.0 + row.x_error_max;
  const OmegaRow common = omega_row(row);
  double eta = (row.scale_error + 2 * kU + row.model.conversion) * kSlack * below + common.shared;
  eta += row.shape.stages * combine_exponent_error(row, below);
  if (!(below + row.x_error_max + eta < kFlushExponent)) return 0.0;
  const double rest = static_cast<double>(row.facts.keys) * 0x1p-63;
  return fmax(0.0, exp(common.down - kLn2 * eta * kSlack) * (low - rest) / (kSlack * kSlack));
}

/** The sums that errors of scores are made of are too large by a part in 2^14 (UnitLoop::score). So
    errors are, by 2^-14 of themselves, and bounds follow them as 2^(2 error) does, or, where a
    softcap is flat, as 2^(2 error / cap). */
__device__ inline bool is_rough(const Call &call, const FirstSums &all) {
  const double cap = call.facts.features.softcap * kLog2E;
  return all.x_error_max > 8.0 || (cap > 0.0 && all.scored > 4.0 * cap);
}

/** Behind the first pass, a block a pair: the exact outputs before their scale, and what the
    errors of all keys have in common. */
template <int kPairs>
__global__ void __launch_bounds__(kFinishThreads)
    between_passes(const __grid_constant__ Call call) {
  const PairUnits units = units_of(call, blockIdx.x, kPairs);
  const Pair &pair = units.pair;
  if (!left(call, pair)) return;
  const bool sink = has_sink(call, pair.head);
  Logit sunk;
  if (sink) {
    RowFeatures features;
    features.sink = call.heads[pair.head].sink;
    sunk = sink_logit(features);
  }
  double top = sink ? ceil(sunk.x) : -INFINITY;
  for (int chunk = 0; chunk < units.chunks; ++chunk)
    top = fmax(top, call.first[units.at(chunk)].top);
  double z = sink ? exp2(sunk.x - top) : 0.0;
  FirstSums all{top, 0.0, 0.0, -INFINITY, 0.0, 0.0, 0.0, 0.0, 0};
  for (int chunk = 0; chunk < units.chunks; ++chunk) {
    const FirstSums &part = call.first[units.at(chunk)];
    z += part.z * exp2(fmax(part.top - top, -1074.0));
    all.low += part.low * exp2(fmax(part.top - top, -1074.0));
    all.x_max = fmax(all.x_max, part.x_max);
    all.x_abs = fmax(all.x_abs, part.x_abs);
    all.x_error_max = fmax(all.x_error_max, part.x_error_max);
    all.query_max = fmax(all.query_max, part.query_max);
    all.scored = fmax(all.scored, part.scored);
    all.no_claim |= part.no_claim;
  }
  for (int dim = static_cast<int>(threadIdx.x); dim < call.dims; dim += kFinishThreads) {
    double sum = 0.0;
    for (int chunk = 0; chunk < units.chunks; ++chunk) {
      const int64_t at = units.at(chunk);
      sum += call.value[at * call.dims + dim] * exp2(fmax(call.first[at].top - top, -1074.0));
    }
    call.center[pair.number * call.dims + dim] = sum / z;
  }
  if (threadIdx.x != 0) return;
  RowNumbers row;
  PairState state{all.x_max, all.x_abs,     all.x_error_max, 0.0,
                  0.0,       all.query_max, all.no_claim,    is_rough(call, all)};
  if (sink) {
    state.x_max = fmax(state.x_max, sunk.x);
    state.x_abs = fmax(state.x_abs, fabs(sunk.x) + sunk.radius + sunk.error);
    state.x_error_max = fmax(state.x_error_max, sunk.error + sunk.radius);
    if (!(fabs(sunk.x) + sunk.error < kFp32Limit)) state.no_claim = 1;
  }
  if (pair.begin < pair.end && state.no_claim == 0) {
    start_numbers(call, pair, state.query_max, row);
    row.x_max = state.x_max;
    row.x_abs = state.x_abs;
    row.x_error_max = state.x_error_max;
    state.no_claim = bound_sums(row) != NoClaim::kNone;
    state.z = z * exp2(top - state.x_max);
    if (sink)
      all.low += exp2(sunk.x - top) *
                 (1.0 + fast_expm1(-kLn2 * score_slope(row) * (sunk.error + sunk.radius)));
    if (state.no_claim == 0) state.mass_floor = mass_floor(row, all.low / z);
  }
  call.pairs[pair.number] = state;
}

/// The keys of a pair, joined: what the second pass found of its units, and the sink.
__device__ inline void join_second(const Call &call, const PairUnits &units, RowNumbers &row,
                                   double &mean, double &worst) {
  double low = 0.0, error_mass = 0.0;
  mean = worst = 0.0;
  row.z = 0.0;
  for (int chunk = 0; chunk < units.chunks; ++chunk) {
    const SecondSums &part = call.second[units.at(chunk)];
    row.z += part.z;
    mean += part.mean;
    low += part.low;
    error_mass += part.error_mass;
    row.weight_error = fmax(row.weight_error, part.weight_error);
    row.log_omega_max = fmax(row.log_omega_max, part.log_omega);
    worst = fmax(worst, part.worst);
    row.vague = row.vague || part.vague != 0;
    row.facts.v_subnormal = row.facts.v_subnormal || part.v_subnormal != 0;
  }
  if (has_sink(call, units.pair.head)) {
    const Logit logit = sink_logit(row.facts.features);
    KeyWeight key;
    weigh_key(row.x_max, logit, key);
    bound_key(row, omega_row(row), logit, key);
    row.z += key.weight;
    mean += key.weight * key.omega;
    low += key.low;
    error_mass += key.weight * key.error;
    if (key.weight > 0.0) row.weight_error = fmax(row.weight_error, key.error);
    row.log_omega_max = fmax(row.log_omega_max, key.log_omega);
    worst = fmax(worst, logit.radius + (row.x_max - logit.x) * 0x1p-53 + 4 * kExp2Error);
    row.vague = row.vague || key.vague;
  }
  row.mass_error = error_mass / row.z * kSlack;
  row.coarse = !(row.weight_error < 0x1p-20);
  row.omega_mean = row.vague ? INFINITY : mean / row.z * kSlack;
  row.mass_low = low / row.z / kSlack;
}

/** Behind the second pass, a thread a pair: what its keys come to. */
template <int kPairs>
__global__ void __launch_bounds__(kRowThreads) join_units(const __grid_constant__ Call call) {
  const unsigned at = blockIdx.x * kRowThreads + threadIdx.x;
  if (at >= static_cast<unsigned>(call.num_pairs)) return;
  const PairUnits units = units_of(call, at, kPairs);
  if (!left(call, units.pair)) return;
  const PairState state = call.pairs[units.pair.number];
  if (units.pair.begin == units.pair.end || state.no_claim != 0) return;
  PairEnd &end = call.ends[units.pair.number];
  RowNumbers row;
  start_numbers(call, units.pair, state.query_max, row);
  row.x_max = state.x_max;
  row.x_abs = state.x_abs;
  row.x_error_max = state.x_error_max;
  bound_row_sums(row);
  join_second(call, units, row, end.mean, end.worst);
  end.row = row;
  end.tail = tail_errors(row.model, row.shape);
}

} // namespace assay::oracle::device
