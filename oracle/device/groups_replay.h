// SPDX-License-Identifier: Apache-2.0
// Internal: the rounding replay of a pair of a group, what its units leave, and its verdict. One
// text for the host and for a GPU.
#pragma once

#include "oracle/device/groups_keys.h"

namespace assay::oracle::device {

/// Behind join_weights: the tiles of each state in their order, and what a tile's keys have in
/// common.
template <class Team, class Lanes>
ORACLE_HOST_DEVICE inline void scan_tiles(const GroupCall &call, Team &team, const Lanes &lanes,
                                          const PairWork &pair) {
  TileView *tiles = call.views + pair.first_tile;
  const int32_t *first = call.states + call.first_state[pair.row];
  const int own = pair.tiles - pair.sink;
  const auto declared =
      static_cast<int>(call.first_state[pair.row + 1] - call.first_state[pair.row]);
  const int states = declared + pair.sink;
  const auto begin_of = [&](int state) {
    return state < declared ? first[state] : state == declared ? own : pair.tiles;
  };
  int reference = states; // the first state that may be it: of those that tie only one can
  for (int state = lanes.number(); state < states; state += lanes.count()) {
    const int begin = begin_of(state), end = begin_of(state + 1);
    scan_state(lanes, tiles + begin, tiles + end);
    lanes.sync();
    if (tiles[end - 1].reference && state < reference) reference = state;
  }
  reference = static_cast<int>(-team.most(-reference));
  team.sync();
  ScaleCosts costs;
  double last = -1.0; // tile of the reference
  for (int i = team.rank(); i < pair.tiles; i += team.size()) {
    const bool of_it =
        reference < states && i >= begin_of(reference) && i < begin_of(reference + 1);
    tiles[i].reference = tiles[i].reference && of_it;
    if (tiles[i].reference) last = i;
    costs.add(tiles[i]);
  }
  costs.exact = team.sum(costs.exact);
  costs.mass_elsewhere = team.sum(costs.mass_elsewhere);
  costs.cost_elsewhere = team.sum(costs.cost_elsewhere);
  last = team.most(last);
  costs.deviation = last < 0.0 ? -1.0 : tiles[static_cast<int>(last)].deviation;
  const ReplayScale scale = costs.cheaper();
  for (int i = team.rank(); i < pair.tiles; i += team.size())
    call.errors[pair.first_tile + i] =
        tile_errors(pair.numbers, pair.tail.partials, tiles[i], scale);
}

/// The coefficients of a stripe's keys.
template <class Team, class Lanes>
ORACLE_HOST_DEVICE inline void replay_keys(const GroupCall &call, Team &team, const Lanes &lanes,
                                           PairWork &pair, const RowNumbers &row, int stripe,
                                           ReplayPart &out) {
  constexpr double kUp = 0x1p800;
  const bool subnormal = call.base.subnormal != 0;
  const double slack = subnormal ? subnormal_slack(row) : 0.0;
  const OmegaRow omega = pair.omega;
  const Stripe of(call, pair, stripe);
  ReplayPart sums{};
  for (int i = of.begin + lanes.number(); i < of.end; i += lanes.count()) {
    const TileView tile = call.views[pair.first_tile + i];
    const TileErrors errors = call.errors[pair.first_tile + i];
    sums.two_parts = sums.two_parts != 0 || tile.two_parts;
    for (int j = tile.begin + lanes.rank(); j < tile.end; j += lanes.size()) {
      const Logit logit = stored_logit(call, pair, j);
      KeyWeight key;
      weigh_key(row.x_max, logit, key);
      bound_key(row, omega, logit, key);
      const ReplayedKey again =
          replay_key(row, call.base.p_format, tile, errors, logit, key.weight);
      sums.denominator += again.denominator;
      sums.lost += again.mass_lost;
      sums.vague = sums.vague != 0 || again.vague;
      if (is_sink(pair, j)) { // its value is zero
        pair.sunk_rescale = again.rescale_mass;
        continue;
      }
      const int64_t slot = pair.slots + j;
      store_weight(call, slot, key);
      call.kind(kOfRho)[slot] = again.rho * kUp;
      call.kind(kOfWide)[slot] = key.weight * (1.0 + key.omega) * kUp;
      call.kind(kOfDoubt)[slot] = again.ambiguity * kUp;
      call.kind(kOfSteps)[slot] = again.accumulate * kUp;
      call.kind(kOfRescale)[slot] = again.rescale * kUp;
      call.kind(kOfMass)[slot] = again.rescale_mass * kUp;
      if (subnormal)
        store_tiny(call, slot, subnormal_coefficient(row, slack, row.z, row.mass_low, key));
    }
  }
  sums.denominator = team.sum(sums.denominator);
  sums.lost = team.sum(sums.lost);
  sums.vague = team.any(sums.vague != 0);
  sums.two_parts = team.any(sums.two_parts != 0);
  if (team.rank() == 0) out = sums;
}

/// The units of a pair, joined: what its values and its replay come to.
template <bool kReplays>
ORACLE_HOST_DEVICE inline void join_parts(const GroupCall &call, int number, PairWork &pair) {
  const KeyGroup &group = call.groups[number / kGroupPairs];
  bool finite = true, subnormal = false;
  for (int unit = group.first_unit; unit < group.first_unit + group.units; ++unit)
    for (int i = 0; i < call.value_parts(); ++i) {
      const ValuePart &part = call.value_part(unit, number % kGroupPairs, i);
      finite = finite && part.finite != 0;
      subnormal = subnormal || part.subnormal != 0;
    }
  pair.numbers.facts.v_subnormal = subnormal;
  if (!finite) pair.claim = 0;
  if constexpr (!kReplays) return;
  double denominator = 0.0, lost = 0.0;
  bool vague = false, two_parts = false;
  for (int stripe = 0; stripe < call.stripes; ++stripe) {
    const ReplayPart &part = call.replays[int64_t{number} * call.stripes + stripe];
    denominator += part.denominator;
    lost += part.lost;
    vague = vague || part.vague != 0;
    two_parts = two_parts || part.two_parts != 0;
  }
  pair.replay = {denominator, 1.0 - lost, two_parts};
  pair.replayed = pair.replay.informative(pair.numbers, vague);
}

/// Behind the sums over V: the outputs, exact and replayed, before their scale.
template <bool kReplays, class Team>
ORACLE_HOST_DEVICE inline void join_columns(const GroupCall &call, Team &team, int number,
                                            PairWork &pair) {
  const KeyGroup &group = call.groups[number / kGroupPairs];
  const int index = number % kGroupPairs, dims = call.base.dims;
  team.sync(); // all have read that the pair has a claim
  if (team.rank() == 0) join_parts<kReplays>(call, number, pair);
  team.sync();
  const double empty = pair.sink != 0 ? 0.0 : -HUGE_VAL; // of the largest v, and of the largest -v
  bool fits = true;
  for (int dim = team.rank(); dim < dims; dim += team.size()) {
    double sums[kGroupSums] = {}, most = empty, least = empty;
    for (int unit = group.first_unit; unit < group.first_unit + group.units; ++unit) {
      const int64_t at = call.unit_pair(unit, index);
      for (int k = 0; k < kGroupSums; ++k)
        if (kReplays || is_first_tiers(k)) sums[k] += call.sums[(at * kGroupSums + k) * dims + dim];
      least = fmax(least, -static_cast<double>(call.ranges[2 * at * dims + dim]));
      most = fmax(most, static_cast<double>(call.ranges[(2 * at + 1) * dims + dim]));
    }
    PairColumn column;
    column.sums = {sums[kSumValue], sums[kSumWide], sums[kSumTiny], 0.0, -least, most};
    column.replayed = {sums[kSumRho], sums[kSumRhoSize],    sums[kSumDoubt], sums[kSumSteps],
                       0.0,           column.sums.largest()};
    column.mid = enclose_column(pair.numbers, column.sums).mid;
    call.columns[int64_t{number} * dims + dim] = column;
    const RowFacts &facts = pair.numbers.facts;
    fits = fits && fits_rounded(facts, column.sums.largest(), facts.features.v_scale);
  }
  if (team.any(!fits) && team.rank() == 0) pair.claim = 0;
}

/// Behind the sums around the outputs: those of all units, and the sink's.
template <bool kReplays, class Team>
ORACLE_HOST_DEVICE inline void join_around(const GroupCall &call, Team &team, int number) {
  const PairWork &pair = call.pairs[number];
  if (pair.row < 0 || pair.claim == 0) return;
  const KeyGroup &group = call.groups[number / kGroupPairs];
  const int dims = call.base.dims;
  for (int dim = team.rank(); dim < dims; dim += team.size()) {
    PairColumn &column = call.columns[int64_t{number} * dims + dim];
    double around = 0.0, replayed = 0.0;
    for (int unit = group.first_unit; unit < group.first_unit + group.units; ++unit) {
      const int64_t at = call.unit_pair(unit, number % kGroupPairs);
      around += call.centered[2 * at * dims + dim];
      if constexpr (kReplays) replayed += call.centered[(2 * at + 1) * dims + dim];
    }
    if (pair.sink != 0) {
      around += fabs(pair.sunk_error * column.mid);
      if constexpr (kReplays) replayed += fabs(pair.sunk_rescale * column.replayed.value);
    }
    column.sums.centered = around;
    column.replayed.rescaled = replayed;
  }
}

} // namespace assay::oracle::device
