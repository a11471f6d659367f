// SPDX-License-Identifier: Apache-2.0
// Internal: the keys of a pair of a group, from logits to the coefficients of the sums over V. A
// Team works on a pair, or on a stripe of its tiles; Lanes, a part of it, on one tile or state. One
// text for the host, where either is one thread, and for a GPU.
#pragma once

#include "oracle/device/groups_logits.h"

namespace assay::oracle::device {

/// Behind all scores: what the errors of all keys have in common. Of one thread.
ORACLE_HOST_DEVICE inline void join_logits(const GroupCall &call, int number) {
  const KeyGroup &group = call.groups[number / kGroupPairs];
  PairWork &pair = call.pairs[number];
  if (pair.row < 0 || pair.claim == 0) return;
  LogitSums all;
  for (int unit = group.first_unit; unit < group.first_unit + group.units; ++unit) {
    const LogitPart &part = call.logits[call.unit_pair(unit, number % kGroupPairs)];
    all.x_max = fmax(all.x_max, part.x_max);
    all.x_abs = fmax(all.x_abs, part.x_abs);
    all.x_error = fmax(all.x_error, part.x_error);
    pair.claim = pair.claim != 0 && part.claim != 0;
  }
  if (pair.sink != 0) all.add(pair.sunk);
  RowNumbers &row = pair.numbers;
  row.x_max = all.x_max;
  row.x_abs = all.x_abs;
  row.x_error_max = all.x_error;
  if (pair.claim == 0 || bound_sums(row) != NoClaim::kNone) {
    pair.claim = 0;
    return;
  }
  pair.omega = omega_row(row);
  pair.tail = tail_errors(row.model, row.shape);
}

ORACLE_HOST_DEVICE inline bool is_sink(const PairWork &pair, int j) { return j == pair.visible; }

ORACLE_HOST_DEVICE inline Logit stored_logit(const GroupCall &call, const PairWork &pair, int j) {
  if (is_sink(pair, j)) return pair.sunk;
  return logit_at(call, pair.slots + j);
}

/// As it is declared, or where no order is, of kTileKeys: what its keys say of it is not there yet.
/// A sink is a split of its own.
ORACLE_HOST_DEVICE inline TileView declared_tile(const GroupCall &call, const PairWork &pair,
                                                 int tile) {
  if (pair.sink != 0 && tile + 1 == pair.tiles)
    return TileView{pair.visible, pair.visible + 1, 1, false};
  if (call.base.replays == 0) {
    const int begin = tile * kTileKeys, end = begin + kTileKeys;
    return TileView{begin, end < pair.visible ? end : pair.visible, 1, false};
  }
  const RowTile &own = call.base.tiles[call.base.first_tile[pair.row] + tile];
  return TileView{own.begin, own.end, own.own_blocks, own.two_parts != 0};
}

/// The tiles of a stripe.
struct Stripe {
  int begin, end;

  ORACLE_HOST_DEVICE Stripe(const GroupCall &call, const PairWork &pair, int stripe)
      : begin(static_cast<int>(int64_t{pair.tiles} * stripe / call.stripes)),
        end(static_cast<int>(int64_t{pair.tiles} * (stripe + 1) / call.stripes)) {}
};

/// What the sums over V and around the outputs take of a key, without a replay.
ORACLE_HOST_DEVICE inline void store_weight(const GroupCall &call, int64_t slot,
                                            const KeyWeight &key) {
  constexpr double kUp = 0x1p800;
  static_assert(kCoefficientScale == 800);
  call.kind(kOfWeight)[slot] = key.weight * kUp;
  call.kind(kOfError)[slot] = key.weight * key.omega * kUp;
}
ORACLE_HOST_DEVICE inline void store_tiny(const GroupCall &call, int64_t slot, double coefficient) {
  call.kind(call.tiny())[slot] = coefficient * 0x1p800;
}

/// What weights come to, key by key.
struct WeightSums : WeightPart {
  ORACLE_HOST_DEVICE WeightSums() : WeightPart{} {}

  /// `key` becomes that of the logit.
  ORACLE_HOST_DEVICE void add(const PairWork &pair, const Logit &logit, KeyWeight &key) {
    const RowNumbers &row = pair.numbers;
    weigh_key(row.x_max, logit, key);
    bound_key(row, pair.omega, logit, key);
    z += key.weight;
    error_mass += key.weight * key.error;
    mean += key.weight * key.omega;
    low += key.low;
    if (key.weight > 0.0) weight_error = fmax(weight_error, key.error);
    log_omega = fmax(log_omega, key.log_omega);
    worst = fmax(worst, logit.radius + (row.x_max - logit.x) * 0x1p-53 + 4 * kExp2Error);
    vague = vague != 0 || key.vague;
  }
  ORACLE_HOST_DEVICE void join(const WeightPart &part) {
    z += part.z;
    error_mass += part.error_mass;
    mean += part.mean;
    low += part.low;
    weight_error = fmax(weight_error, part.weight_error);
    log_omega = fmax(log_omega, part.log_omega);
    worst = fmax(worst, part.worst);
    vague = vague != 0 || part.vague != 0;
  }
};

/// Weights and Omega of a stripe's keys, and what they say of their tiles. kReplays: the call's
/// flag, known before.
template <bool kReplays, class Team, class Lanes>
ORACLE_HOST_DEVICE inline void look_at_keys(const GroupCall &call, Team &team, const Lanes &lanes,
                                            PairWork &pair, int stripe, WeightPart &out) {
  const bool stores = !kReplays && call.base.subnormal == 0;
  const Stripe of(call, pair, stripe);
  WeightSums sums;
  for (int i = of.begin + lanes.number(); i < of.end; i += lanes.count()) {
    TileView tile = declared_tile(call, pair, i);
    TileLook look;
    for (int j = tile.begin + lanes.rank(); j < tile.end; j += lanes.size()) {
      const Logit logit = stored_logit(call, pair, j);
      KeyWeight key;
      sums.add(pair, logit, key);
      if constexpr (kReplays) look.add(pair.numbers.x_max, logit, key.weight);
      if (is_sink(pair, j))
        pair.sunk_error = key.weight * key.omega;
      else if (stores)
        store_weight(call, pair.slots + j, key);
    }
    if constexpr (kReplays) {
      look.top = lanes.most(look.top);
      look.high = lanes.most(look.high);
      look.low = lanes.most(look.low);
      look.mass = lanes.sum(look.mass);
      look.put(tile);
      if (lanes.rank() == 0) call.views[pair.first_tile + i] = tile;
    }
  }
  sums.z = team.sum(sums.z);
  sums.error_mass = team.sum(sums.error_mass);
  sums.mean = team.sum(sums.mean);
  sums.low = team.sum(sums.low);
  sums.weight_error = team.most(sums.weight_error);
  sums.log_omega = team.most(sums.log_omega);
  sums.worst = team.most(sums.worst);
  sums.vague = team.any(sums.vague != 0);
  if (team.rank() == 0) out = sums;
}

/// Without a replay, where P may be subnormal: coefficients that need the row's sums.
template <class Lanes>
ORACLE_HOST_DEVICE inline void weigh_keys(const GroupCall &call, const Lanes &lanes,
                                          const PairWork &pair, int stripe) {
  const RowNumbers &row = pair.numbers;
  const double slack = subnormal_slack(row);
  const Stripe of(call, pair, stripe);
  for (int i = of.begin + lanes.number(); i < of.end; i += lanes.count()) {
    const TileView tile = declared_tile(call, pair, i);
    for (int j = tile.begin + lanes.rank(); j < tile.end; j += lanes.size()) {
      if (is_sink(pair, j)) continue; // its value is zero
      const Logit logit = stored_logit(call, pair, j);
      KeyWeight key;
      weigh_key(row.x_max, logit, key);
      bound_key(row, pair.omega, logit, key);
      store_weight(call, pair.slots + j, key);
      store_tiny(call, pair.slots + j, subnormal_coefficient(row, slack, row.z, row.mass_low, key));
    }
  }
}

/// What the keys of a pair come to.
ORACLE_HOST_DEVICE inline void finish_weights(const WeightPart &all, PairWork &pair) {
  RowNumbers &row = pair.numbers;
  row.z = all.z;
  row.weight_error = all.weight_error;
  row.mass_error = all.error_mass / all.z * kSlack;
  row.coarse = !(all.weight_error < 0x1p-20);
  row.vague = all.vague != 0;
  row.log_omega_max = all.log_omega;
  row.omega_mean = row.vague ? HUGE_VAL : all.mean / all.z * kSlack;
  row.mass_low = all.low / all.z / kSlack;
  pair.worst = all.worst;
}

/// Behind all stripes or units, of one thread.
ORACLE_HOST_DEVICE inline void join_weights(const GroupCall &call, int number, PairWork &pair) {
  WeightSums all;
  const KeyGroup &group = call.groups[number / kGroupPairs];
  if (call.weighs_in_units != 0)
    for (int unit = group.first_unit; unit < group.first_unit + group.units; ++unit)
      all.join(call.weights[call.unit_pair(unit, number % kGroupPairs)]);
  else
    for (int stripe = 0; stripe < call.stripes; ++stripe)
      all.join(call.weights[int64_t{number} * call.stripes + stripe]);
  finish_weights(all, pair);
}

} // namespace assay::oracle::device
