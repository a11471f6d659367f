// SPDX-License-Identifier: Apache-2.0
// Internal: the two passes over keys and values. The first gives the exact outputs and what the
// errors of all keys have in common; the second what each key adds to the bounds.
#pragma once

#include "oracle/device/centered.cuh"

namespace assay::oracle::device {

template <int kPairs, int kBlocks>
__global__ void __launch_bounds__(kThreads, kPairs == 4 && kBlocks <= 4 ? 2 : 1)
    first_pass(const __grid_constant__ Call call) {
  extern __shared__ __align__(128) unsigned char shared[];
  using Loop = UnitLoop<kPairs, kBlocks>;
  Loop loop(call, shared);
  if (!any_left(call, loop.unit)) return;
  auto &memory = loop.memory;
  const LaneKeys<kPairs> &lane = loop.lane;
  loop.start();
  Fragments sums = {};
  int own_top = Loop::kNoTop, fragment_top = Loop::kNoTop;
  double z = 0.0, low = 0.0, x_max = -INFINITY, x_abs = 0.0, x_error = 0.0, scored = 0.0;
  uint32_t special = 0; // of the thread's keys
  bool claim = lane.pair >= loop.unit.pairs || memory.pairs[lane.pair].finite;
  for (int number = 0; number < loop.tiles_of_unit(); ++number) {
    loop.turn_to(number);
    if (static_cast<int>(threadIdx.x) < kTileKeys)
      special |= memory.marks.k[threadIdx.x] | memory.marks.v[threadIdx.x];
    const LaneScores score = loop.score(number);
    double x[2] = {-INFINITY, -INFINITY}, share[2] = {};
#pragma unroll
    for (int e = 0; e < LaneKeys<kPairs>::kCount; ++e) {
      if (!loop.sees(number, e)) continue;
      Logit logit;
      if (!loop.logit(number, e, score, logit)) {
        claim = false;
        continue;
      }
      x[e] = logit.x;
      if (call.subnormal != 0)
        share[e] = 1.0 + fast_expm1(-kLn2 * score_slope(memory.rows[lane.pair]) *
                                    (logit.error + logit.radius));
      x_max = fmax(x_max, logit.x);
      x_abs = fmax(x_abs, fabs(logit.x) + logit.radius + logit.error);
      x_error = fmax(x_error, logit.error + logit.radius);
      if (call.facts.features.softcap > 0.0f) {
        const RowNumbers &row = memory.rows[lane.pair];
        scored = fmax(
            scored, row.scale * (row.model.dot * score.size[e] + row.q_error * score.key_size[e]));
      }
    }
    const double top = over_lanes<kPairs>(fmax(x[0], x[1]), Most{});
    if (lane.lane % 4 == 0 && lane.lane < kPairs * 4 && top > -INFINITY)
      atomicMax(&memory.top[lane.pair], static_cast<int>(ceil(top)));
    __syncthreads();
    // Tops are integers, so that a change of scale rounds nothing.
    const int new_top = memory.top[lane.pair];
    if (new_top != own_top) {
      z = ldexp(z, max(own_top - new_top, -4000));
      low = ldexp(low, max(own_top - new_top, -4000));
    }
    own_top = new_top;
#pragma unroll
    for (int e = 0; e < LaneKeys<kPairs>::kCount; ++e) {
      const double below = new_top - x[e];
      const double weight = below > kUnderflow ? 0.0 : exp2(-below);
      z += weight;
      low += weight * share[e];
      memory.weights[lane.pair][lane.first + e] = weight * 0x1p800;
    }
    const int row_top = memory.top[min(lane.lane / 4, kPairs - 1)];
    if (row_top != fragment_top) {
      const double factor = ldexp(1.0, max(fragment_top - row_top, -1074));
      for (auto &group : sums)
        for (auto &side : group)
          for (double &sum : side)
            sum *= factor;
    }
    fragment_top = row_top;
    __syncthreads();
    weigh_values<kPairs>(loop.shape, loop.decoder, memory.weights, loop.values(number), false,
                         sums);
  }
  over_block(memory, lane, 0, z, Add{});
  over_block(memory, lane, 1, x_max, Most{});
  over_block(memory, lane, 2, x_abs, Most{});
  over_block(memory, lane, 3, x_error, Most{});
  over_block(memory, lane, 4, claim ? 0.0 : 1.0, Most{});
  over_block(memory, lane, 5, low, Add{});
  over_block(memory, lane, 6, scored, Most{});
  const bool plain = __syncthreads_and(special == 0) != 0;
  if (threadIdx.x == 0) call.plain_units[loop.unit.id] = plain;
  const int pair = static_cast<int>(threadIdx.x);
  const int64_t base = loop.unit.id * kPairs;
  if (pair < loop.unit.pairs)
    call.first[base + pair] = {static_cast<double>(memory.top[pair]),
                               joined(memory, pair, 0, Add{}),
                               joined(memory, pair, 5, Add{}),
                               joined(memory, pair, 1, Most{}),
                               joined(memory, pair, 2, Most{}),
                               joined(memory, pair, 3, Most{}),
                               memory.query_max[pair],
                               joined(memory, pair, 6, Most{}),
                               joined(memory, pair, 4, Most{}) > 0.0};
  const double unscale = ldexp(1.0, loop.decoder.exponent - kWeightScale);
  each_sum(sums, loop.unit.pairs, call.dims, [&](int p, int dim, double sum) {
    call.value[(base + p) * call.dims + dim] = sum * unscale;
  });
}

struct Flags {
  __device__ double operator()(double a, double b) const {
    return static_cast<int>(a) | static_cast<int>(b);
  }
};

template <int kPairs>
__device__ inline void store_second(const Call &call, const Unit &unit,
                                    const UnitMemory<kPairs> &memory) {
  const int pair = static_cast<int>(threadIdx.x);
  if (pair >= unit.pairs) return;
  const int flags = static_cast<int>(joined(memory, pair, 7, Flags{}));
  call.second[unit.id * kPairs + pair] = {joined(memory, pair, 0, Add{}),
                                          joined(memory, pair, 1, Add{}),
                                          joined(memory, pair, 2, Add{}),
                                          joined(memory, pair, 3, Add{}),
                                          joined(memory, pair, 4, Most{}),
                                          joined(memory, pair, 5, Most{}),
                                          joined(memory, pair, 6, Most{}),
                                          flags / 2,
                                          flags % 2};
}

template <int kPairs, int kBlocks>
__global__ void __launch_bounds__(kThreads, kPairs == 4 && kBlocks <= 4 ? 2 : 1)
    second_pass(const __grid_constant__ Call call) {
  extern __shared__ __align__(128) unsigned char shared[];
  using Loop = UnitLoop<kPairs, kBlocks>;
  Loop loop(call, shared);
  if (!any_left(call, loop.unit)) return;
  auto &memory = loop.memory;
  const LaneKeys<kPairs> &lane = loop.lane;
  loop.start();
  loop.scans = !call.plain_units[loop.unit.id];
  if (!loop.scans && static_cast<int>(threadIdx.x) < kTileKeys)
    memory.marks.k[threadIdx.x] = memory.marks.v[threadIdx.x] = 0;
  Centered<kPairs> centered(loop.shape);
#pragma unroll
  for (int pair = 0; pair < kPairs; ++pair)
#pragma unroll
    for (int i = 0; i < 2; ++i) {
      const int dim = 2 * centered.column + i;
      if (pair >= loop.unit.pairs || dim >= call.dims) continue;
      const int64_t number = memory.pairs[pair].number;
      centered.center[pair][i] = static_cast<float>(call.center[number * call.dims + dim]);
    }
  if (static_cast<int>(threadIdx.x) < loop.unit.pairs) {
    const PairState state = call.pairs[memory.pairs[threadIdx.x].number];
    RowNumbers &row = memory.rows[threadIdx.x];
    row.x_max = state.x_max;
    row.x_abs = state.x_abs;
    row.x_error_max = state.x_error_max;
    row.z = state.z;
    row.mass_low = state.mass_floor;
    bound_row_sums(row);
    memory.omega[threadIdx.x] = omega_row(row);
    if (state.no_claim != 0) memory.pairs[threadIdx.x].finite = false;
  }
  __syncthreads();
  Fragments magnitudes = {}, subnormal = {};
  double z = 0.0, mean = 0.0, low = 0.0, error_mass = 0.0;
  double weight_error = 0.0, log_omega = 0.0, worst = 0.0;
  bool vague = false, subnormal_value = false;
  for (int number = 0; number < loop.tiles_of_unit(); ++number) {
    loop.turn_to(number);
    const LaneScores score = loop.score(number);
#pragma unroll
    for (int e = 0; e < LaneKeys<kPairs>::kCount; ++e) {
      double a = 0.0, c = 0.0, tiny = 0.0;
      Logit logit;
      if (loop.sees(number, e) && loop.logit(number, e, score, logit)) {
        const RowNumbers &row = memory.rows[lane.pair];
        KeyWeight key;
        weigh_key(row.x_max, logit, key);
        bound_key(row, memory.omega[lane.pair], logit, key);
        z += key.weight;
        mean += key.weight * key.omega;
        low += key.low;
        error_mass += key.weight * key.error;
        if (key.weight > 0.0) weight_error = fmax(weight_error, key.error);
        log_omega = fmax(log_omega, key.log_omega);
        worst = fmax(worst, logit.radius + (row.x_max - logit.x) * 0x1p-53 + 4 * kExp2Error);
        vague = vague || key.vague;
        subnormal_value =
            subnormal_value || (memory.marks.v[lane.first + e] & kSubnormalValue) != 0;
        a = key.weight * (1.0 + key.omega);
        c = key.weight * key.omega;
        if (call.subnormal != 0)
          tiny = subnormal_coefficient(row, subnormal_slack(row), row.z, row.mass_low, key);
      }
      memory.weights[lane.pair][lane.first + e] = a * 0x1p800;
      memory.subnormal[lane.pair][lane.first + e] = tiny * 0x1p800;
      memory.centered[lane.first + e][lane.pair] = __double2float_ru(c);
    }
    __syncthreads();
    const unsigned char *values = loop.values(number);
    weigh_values<kPairs>(loop.shape, loop.decoder, memory.weights, values, true, magnitudes);
    if (call.subnormal != 0)
      weigh_values<kPairs>(loop.shape, loop.decoder, memory.subnormal, values, true, subnormal);
    const int position = loop.unit.begin + number * kTileKeys;
    bool all_seen = true;
    for (int pair = 0; pair < loop.unit.pairs; ++pair) {
      const Pair &row = memory.pairs[pair];
      all_seen =
          all_seen && row.begin <= position && min(row.end, loop.unit.end) >= position + kTileKeys;
    }
    if (call.kv_dtype == ASSAY_BF16)
      centered.template add<true>(loop.shape, memory, values, position, loop.unit.pairs, all_seen);
    else
      centered.template add<false>(loop.shape, memory, values, position, loop.unit.pairs, all_seen);
    if (number % kFoldTiles == kFoldTiles - 1) centered.fold();
  }
  centered.fold();
  over_block(memory, lane, 0, z, Add{});
  over_block(memory, lane, 1, mean, Add{});
  over_block(memory, lane, 2, low, Add{});
  over_block(memory, lane, 3, error_mass, Add{});
  over_block(memory, lane, 4, weight_error, Most{});
  over_block(memory, lane, 5, log_omega, Most{});
  over_block(memory, lane, 6, worst, Most{});
  over_block(memory, lane, 7, (vague ? 2.0 : 0.0) + (subnormal_value ? 1.0 : 0.0), Flags{});
  __syncthreads();
  store_second<kPairs>(call, loop.unit, memory);
  store_components<kPairs>(call, loop.unit, loop.shape, loop.decoder, centered, magnitudes,
                           subnormal, loop.tiles);
}

} // namespace assay::oracle::device
