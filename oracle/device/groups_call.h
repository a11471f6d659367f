// SPDX-License-Identifier: Apache-2.0
// Internal: (row, head) pairs that share keys, as the steps over them take them. Plain data; arrays
// where the steps run.
#pragma once

#include <algorithm>
#include <vector>

#include "oracle/bounds/joint_formulas.h"
#include "oracle/bounds/replay_formulas.h"
#include "oracle/device/make_call.h"

namespace assay::oracle::device {

inline constexpr int kGroupPairs = 4;

/** Up to kGroupPairs pairs of one list and kv head, and the keys that some of them sees. */
struct KeyGroup {
  int32_t list, kv_head;
  int32_t run_keys; ///< of every run of the list but the last; 0: they differ
  int32_t pairs;
  int32_t row[kGroupPairs], head[kGroupPairs];
  int32_t begin, end;
  int32_t stride; ///< slots of a pair: its keys from `begin`, padded to whole tiles
  int32_t first_unit, units;
  int64_t slots;              ///< of the first pair: those of the others follow
  int64_t tiles[kGroupPairs]; ///< of each pair's order, in the launch's
};

/** What is kept of a pair and a key. Coefficients are times 2^kCoefficientScale; keys that a pair
    does not see have 0. Without a replay there are the first three alone. */
enum GroupKind {
  kOfWeight,  ///< w
  kOfError,   ///< w omega; of V - o
  kOfMass,    ///< rescale_mass, as those below of the replay
  kOfRho,     ///< rho
  kOfWide,    ///< w (1 + omega)
  kOfDoubt,   ///< ambiguity
  kOfSteps,   ///< accumulate
  kOfRescale, ///< rescale
  kOfTiny,    ///< where P may be subnormal; else there are none of them
  kGroupKinds,
  // The logits, until coefficients take their places.
  kLogitX = kOfWeight,
  kLogitRadius = kOfError,
  kLogitError = kOfMass,
  kLogitKinds
};
/** Where P may be subnormal: what stands for kOfTiny. */
ORACLE_HOST_DEVICE constexpr int tiny_kind(bool replays) { return replays ? kOfTiny : kOfMass; }
inline constexpr int kCoefficientScale = 800;

/** Sums over a unit's keys for a pair and a component. */
enum GroupSum {
  kSumValue,
  kSumRho,
  kSumRhoSize,
  kSumWide,
  kSumDoubt,
  kSumSteps,
  kSumTiny,
  kGroupSums
};
ORACLE_HOST_DEVICE constexpr bool is_first_tiers(int sum) {
  return sum == kSumValue || sum == kSumWide || sum == kSumTiny;
}

/** A pair from its query to its verdict. */
struct PairWork {
  int32_t row, head; ///< row -1: there is none
  int32_t begin, visible, tiles;
  int32_t claim; ///< 0: left to the host
  int32_t sink, align;
  int32_t plain_query; ///< no element is subnormal or large, in fp16
  int32_t replayed;    ///< T1 applies, or T2
  int32_t aimed;       ///< the pair is judged as one, too, along its error
  int64_t slots;       ///< of its first key
  int64_t first_tile;  ///< of the launch's
  double worst;        ///< as lse_enclosure takes it
  RowNumbers numbers;
  TailErrors tail;
  OmegaRow omega;
  ReplayNumbers replay;
  Logit sunk;                      ///< of the sink
  double sunk_error, sunk_rescale; ///< w omega, rescale_mass
  JointScalars joint;              ///< where `aimed`; `subnormal` is the keys'
  JointAlong along;                ///< likewise; what its elements may be off by is not there yet
};

/** What a unit leaves of a pair; of values, a unit and kPartDim components. */
struct LogitPart {
  double x_max, x_abs, x_error;
  int32_t claim;
};
struct ValuePart {
  int32_t finite, subnormal;
};

/** What a stripe, a share of a pair's tiles, leaves of it. */
struct WeightPart {
  double z, error_mass, mean, low, weight_error, log_omega, worst;
  int32_t vague;
};
struct ReplayPart {
  double denominator, lost;
  int32_t vague, two_parts;
};

/** What a unit's keys come to along a pair's error. */
struct AlongPart {
  JointSums sums;
  double rounding, alignment; ///< of subnormal weights, as SubnormalCost has them
};

/** Of a pair and a component, when all units are joined. */
struct PairColumn {
  ColumnSums sums;
  ReplaySums replayed;
  double mid;   ///< of the exact output, before its scale
  double error; ///< of what was written
};

/**
 * The steps over pairs come in one round, or with T2 in two: then the scores are the kernel's own,
 * and all steps are taken again over the same memory, but for pairs and columns.
 */
struct GroupCall {
  Call base;
  const int32_t *states;      ///< of all rows: the first tile of each state, counted from the row's
  const int64_t *first_state; ///< [rows + 1]

  // These change from launch to launch.
  const KeyGroup *groups;
  int32_t num_groups, num_units;
  int32_t unit_keys; ///< of a unit, a multiple of kTileKeys
  int32_t stripes;   ///< of a pair
  int64_t slots;
  double *keys;          ///< [kinds][slots]
  PairWork *pairs;       ///< [groups, kGroupPairs] of this round
  TileView *views;       ///< of all pairs
  TileErrors *errors;    ///< likewise
  LogitPart *logits;     ///< [units, kGroupPairs]
  ValuePart *values;     ///< [value_parts(), units, kGroupPairs]
  WeightPart *weights;   ///< [pairs, stripes]; or where weighs_in_units, [units, kGroupPairs]
  ReplayPart *replays;   ///< [pairs, stripes]
  double *sums;          ///< [units, kGroupPairs, kGroupSums, dims]
  float *ranges;         ///< [units, kGroupPairs, 2, dims]: least and largest v
  double *centered;      ///< [units, kGroupPairs, 2, dims]: around o, around the replayed one
  AlongPart *along;      ///< [units, kGroupPairs]
  PairColumn *columns;   ///< [pairs, dims] of this round
  PairWork *exact_pairs; ///< of the round with the kernel's own scores
  PairColumn *exact_columns;
  TierElement *elements;   ///< [teams, tiers, dims + 1]
  int32_t exact;           ///< 1: that round
  int32_t weighs_in_units; ///< 1: weights are made where values are summed

  /// Its second round.
  GroupCall exact_round() const {
    GroupCall call = *this;
    call.pairs = exact_pairs;
    call.columns = exact_columns;
    call.exact = 1;
    return call;
  }
  ORACLE_HOST_DEVICE int tiny() const { return tiny_kind(base.replays != 0); }
  ORACLE_HOST_DEVICE int kinds() const {
    if (base.replays == 0) return kLogitKinds;
    return base.subnormal != 0 ? kGroupKinds : static_cast<int>(kOfTiny);
  }

  ORACLE_HOST_DEVICE double *kind(int k) const { return keys + k * slots; }
  ORACLE_HOST_DEVICE int64_t unit_pair(int unit, int index) const {
    return int64_t{unit} * kGroupPairs + index;
  }
  ORACLE_HOST_DEVICE int value_parts() const { return (base.dims + kPartDim - 1) / kPartDim; }
  ORACLE_HOST_DEVICE ValuePart &value_part(int unit, int index, int part) const {
    return values[(int64_t{part} * num_units + unit) * kGroupPairs + index];
  }
};

/** A launch: how many groups, from which on; what it needs. */
struct GroupWave {
  int64_t first_group = 0;
  int32_t groups = 0, units = 0, unit_keys = kTileKeys, stripes = 1;
  int64_t slots = 0, tiles = 0;
};

/** What launches are cut to. */
struct GroupSizes {
  int64_t bytes;        ///< of scratch
  int32_t units;        ///< wanted at once
  int32_t least_tiles;  ///< of a unit, of kTileKeys keys
  int32_t pairs;        ///< of a group at most
  int32_t stripe_tiles; ///< of a stripe, as long as there are not too many stripes
};

/** For a call that is one launch: a unit and a stripe of each group of up to `pairs`. */
inline constexpr GroupSizes undivided(int32_t pairs) {
  return {int64_t{1} << 40, 1, 1, pairs, 1 << 30};
}

/** How large a call is: its (row, head) pairs times their keys, in whole tiles. */
int64_t keys_of_pairs(const AttentionRows &rows);

struct GroupPlan {
  std::vector<KeyGroup> groups;
  std::vector<GroupWave> waves;
  std::vector<int32_t> states;
  std::vector<int64_t> first_state;
};
GroupPlan plan_groups(const AttentionRows &rows, const CallArrays &arrays, const GroupSizes &sizes);

/** All but what belongs to a launch; `groups` gets the plan's. */
GroupCall make_group_call(const AttentionRows &rows, const CallOutputs &outputs,
                          const KernelModel &model, const CallArrays &arrays, const GroupPlan &plan,
                          const Place &place);

/** Gives a launch its memory: `reserve(bytes)` is asked for each array, in the same order. */
template <class Reserve>
void place_wave(GroupCall &call, const GroupWave &wave, const KeyGroup *groups, int64_t teams,
                Reserve reserve) {
  const auto array = [&]<class T>(T *&to, int64_t count) {
    void *at = reserve(static_cast<size_t>(count) * sizeof(T));
    to = static_cast<T *>(at);
  };
  const int64_t units = int64_t{wave.units} * kGroupPairs;
  const int64_t pairs = int64_t{wave.groups} * kGroupPairs, dims = call.base.dims;
  const int64_t exact = call.base.replay_scores != 0 ? pairs : 0;
  call.groups = groups + wave.first_group;
  call.num_groups = wave.groups;
  call.num_units = wave.units;
  call.unit_keys = wave.unit_keys;
  call.stripes = wave.stripes;
  call.slots = wave.slots;
  array(call.keys, wave.slots * call.kinds());
  array(call.pairs, pairs);
  array(call.views, wave.tiles);
  array(call.errors, wave.tiles);
  array(call.logits, units);
  array(call.values, call.value_parts() * units);
  array(call.weights, std::max(pairs * wave.stripes, units));
  array(call.replays, pairs * wave.stripes);
  array(call.sums, units * kGroupSums * dims);
  array(call.ranges, units * 2 * dims);
  array(call.centered, units * 2 * dims);
  array(call.along, units);
  array(call.columns, pairs * dims);
  array(call.exact_pairs, exact);
  array(call.exact_columns, exact * dims);
  array(call.elements, teams * call.base.tiers() * (dims + 1));
}

} // namespace assay::oracle::device
