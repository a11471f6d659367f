// SPDX-License-Identifier: Apache-2.0
// Internal: the keys of a pair of a group, from logits to the coefficients of the sums over V. A
// Team works on a pair, or on a stripe of its tiles; Lanes, a part of it, on one tile or state. One
// text for the host, where either is one thread, and for a GPU.
#pragma once

#include "oracle/device/call_rows.h"
#include "oracle/device/groups_call.h"
#include "oracle/device/tiers_keys.h"

namespace assay::oracle::device {

/// The pair's query, and what is known before its keys.
template <class Team>
ORACLE_HOST_DEVICE inline void start_pair(const GroupCall &call, Team &team, int number) {
  const KeyGroup &group = call.groups[number / kGroupPairs];
  const int index = number % kGroupPairs;
  PairWork &pair = call.pairs[number];
  if (index >= group.pairs) {
    if (team.rank() == 0) pair.row = -1;
    return;
  }
  const Call &base = call.tiers.base;
  const int row = group.row[index], head = group.head[index];
  const int64_t at = base.q_at[row] + head * base.q_stride_head;
  double largest = 0.0;
  for (int i = team.rank(); i < base.head_dim; i += team.size()) {
    const double size = fabs(load_element(base.q_dtype, call.tiers.fp8, base.q, at + i));
    largest = fmax(largest, size < HUGE_VAL ? size : HUGE_VAL); // NaN as well
  }
  largest = team.most(largest);
  const int visible = base.end[row] - base.begin[row];
  const bool sink = has_sink(base, head);
  if (team.rank() == 0) {
    pair.row = row;
    pair.head = head;
    pair.begin = base.begin[row];
    pair.visible = visible;
    pair.sink = sink;
    pair.tiles = static_cast<int32_t>(call.tiers.first_tile[row + 1] - call.tiers.first_tile[row]) +
                 (sink ? 1 : 0);
    pair.first_tile = group.tiles[index];
    pair.slots = group.slots + int64_t{index} * group.stride + (pair.begin - group.begin);
    pair.query_max = largest;
    pair.replayed = 0;
    pair.claim = visible > 0 && largest < HUGE_VAL &&
                 start_numbers(base, row, head, visible, largest, pair.numbers);
    if (sink) pair.sunk = sink_logit(pair.numbers.facts.features);
    if (sink && !(fabs(pair.sunk.x) + pair.sunk.error < kFp32Limit)) pair.claim = 0;
  }
  team.sync();
  bool align = false;
  for (int i = team.rank(); i < base.head_dim; i += team.size()) {
    const double size = fabs(load_element(base.q_dtype, call.tiers.fp8, base.q, at + i));
    align = align || (size != 0.0 && size < pair.numbers.q_least);
  }
  align = team.any(align);
  if (team.rank() == 0) pair.align = align;
}

/// What subnormal operands of a key add to the magnitude that addends are aligned by.
ORACLE_HOST_DEVICE inline double excess_of(const GroupCall &call, const PairWork &pair,
                                           const unsigned char *k) {
  const Call &base = call.tiers.base;
  const double least_q = pair.numbers.q_least;
  const double least_k = ldexp(1.0, base.facts.operand.min_exponent);
  const int64_t q_at = base.q_at[pair.row] + pair.head * base.q_stride_head;
  double sum = 0.0;
  for (int i = 0; i < base.head_dim; ++i) {
    const double a = fabs(load_element(base.q_dtype, call.tiers.fp8, base.q, q_at + i));
    const double b = fabs(load_element(base.kv_dtype, call.tiers.fp8, k, i));
    if (a == 0.0 || b == 0.0 || (a >= least_q && b >= least_k)) continue;
    sum += fmax(a, least_q) * fmax(b, least_k);
  }
  return sum;
}

/// What is known of a key's score: `subnormal`: the key at `k` has such elements.
struct GroupScore {
  Score score;
  double key_size;
  bool subnormal;
  const unsigned char *k;
};

/// The logit of key `j` of the pair. False: nothing is claimed.
ORACLE_HOST_DEVICE inline bool logit_of(const GroupCall &call, const PairWork &pair, int j,
                                        const GroupScore &of, Logit &logit) {
  const Call &base = call.tiers.base;
  KeyFacts facts;
  const int behind = base.behind == nullptr ? 0 : base.behind[pair.row];
  facts.distance = static_cast<double>(base.shard.position(pair.begin + j) -
                                       base.shard.position(pair.begin + pair.visible - 1) + behind);
  facts.head_dim = base.head_dim;
  facts.key_magnitude = of.key_size;
  if (pair.align != 0 || of.subnormal) facts.excess = excess_of(call, pair, of.k);
  return key_logit(pair.numbers, of.score, facts, logit);
}

/// The logits of a unit for a pair.
struct LogitSums {
  double x_max = -HUGE_VAL, x_abs = 0.0, x_error = 0.0;

  ORACLE_HOST_DEVICE void add(const Logit &logit) {
    x_max = fmax(x_max, logit.x);
    x_abs = fmax(x_abs, fabs(logit.x) + logit.radius + logit.error);
    x_error = fmax(x_error, logit.error + logit.radius);
  }
};

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
  const int64_t slot = pair.slots + j;
  return {call.kind(kLogitX)[slot], call.kind(kLogitRadius)[slot], call.kind(kLogitError)[slot]};
}

/// As it is declared: what its keys say of it is not there yet. A sink is a split of its own.
ORACLE_HOST_DEVICE inline TileView declared_tile(const GroupCall &call, const PairWork &pair,
                                                 int tile) {
  if (pair.sink != 0 && tile + 1 == pair.tiles)
    return TileView{pair.visible, pair.visible + 1, 1, false};
  const RowTile &own = call.tiers.tiles[call.tiers.first_tile[pair.row] + tile];
  return TileView{own.begin, own.end, own.own_blocks, own.two_parts != 0};
}

/// The tiles of a stripe.
struct Stripe {
  int begin, end;

  ORACLE_HOST_DEVICE Stripe(const GroupCall &call, const PairWork &pair, int stripe)
      : begin(static_cast<int>(int64_t{pair.tiles} * stripe / call.stripes)),
        end(static_cast<int>(int64_t{pair.tiles} * (stripe + 1) / call.stripes)) {}
};

/// Weights and Omega of a stripe's keys, and what they say of their tiles.
template <class Team, class Lanes>
ORACLE_HOST_DEVICE inline void look_at_keys(const GroupCall &call, Team &team, const Lanes &lanes,
                                            const PairWork &pair, int stripe, WeightPart &out) {
  const RowNumbers &row = pair.numbers;
  const Stripe of(call, pair, stripe);
  WeightPart sums{};
  for (int i = of.begin + lanes.number(); i < of.end; i += lanes.count()) {
    TileView tile = declared_tile(call, pair, i);
    TileLook look;
    for (int j = tile.begin + lanes.rank(); j < tile.end; j += lanes.size()) {
      const Logit logit = stored_logit(call, pair, j);
      KeyWeight key;
      weigh_key(row.x_max, logit, key);
      bound_key(row, pair.omega, logit, key);
      look.add(row.x_max, logit, key.weight);
      sums.z += key.weight;
      sums.error_mass += key.weight * key.error;
      sums.mean += key.weight * key.omega;
      sums.low += key.low;
      if (key.weight > 0.0) sums.weight_error = fmax(sums.weight_error, key.error);
      sums.log_omega = fmax(sums.log_omega, key.log_omega);
      sums.worst =
          fmax(sums.worst, logit.radius + (row.x_max - logit.x) * 0x1p-53 + 4 * kExp2Error);
      sums.vague = sums.vague != 0 || key.vague;
    }
    look.top = lanes.most(look.top);
    look.high = lanes.most(look.high);
    look.low = lanes.most(look.low);
    look.mass = lanes.sum(look.mass);
    look.put(tile);
    if (lanes.rank() == 0) call.views[pair.first_tile + i] = tile;
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

/// Behind all stripes, of one thread: what the keys come to.
ORACLE_HOST_DEVICE inline void join_weights(const GroupCall &call, int number, PairWork &pair) {
  WeightPart all{};
  for (int stripe = 0; stripe < call.stripes; ++stripe) {
    const WeightPart &part = call.weights[int64_t{number} * call.stripes + stripe];
    all.z += part.z;
    all.error_mass += part.error_mass;
    all.mean += part.mean;
    all.low += part.low;
    all.weight_error = fmax(all.weight_error, part.weight_error);
    all.log_omega = fmax(all.log_omega, part.log_omega);
    all.worst = fmax(all.worst, part.worst);
    all.vague = all.vague != 0 || part.vague != 0;
  }
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

} // namespace assay::oracle::device
