// SPDX-License-Identifier: Apache-2.0
// Internal: (row, head) pairs that share keys, as the steps over them take them. Plain data; arrays
// where the steps run.
#pragma once

#include <string>
#include <vector>

#include "oracle/bounds/replay_formulas.h"
#include "oracle/device/tiers_call.h"

namespace assay::oracle::device {

inline constexpr int kGroupPairs = 4;
inline constexpr int kGroupDim = 128; ///< elements of a key and of a value at most

/** Up to kGroupPairs pairs of one list and kv head, and the keys that some of them sees. */
struct KeyGroup {
  int32_t list, kv_head, run_keys; ///< run_keys as ListWork has it
  int32_t pairs;
  int32_t row[kGroupPairs], head[kGroupPairs];
  int32_t begin, end;
  int32_t stride; ///< slots of a pair: its keys from `begin`, padded to whole tiles
  int32_t first_unit, units;
  int64_t slots;              ///< of the first pair: those of the others follow
  int64_t tiles[kGroupPairs]; ///< of each pair's order, in the launch's
};

/** What is kept of a pair and a key. Coefficients are times 2^kCoefficientScale; keys that a pair
    does not see have 0. */
enum GroupKind {
  kOfWeight,  ///< w
  kOfRho,     ///< of the replay, likewise those below
  kOfWide,    ///< w (1 + omega)
  kOfDoubt,   ///< ambiguity
  kOfSteps,   ///< accumulate
  kOfError,   ///< w omega; of V - o
  kOfRescale, ///< rescale
  kOfMass,    ///< rescale_mass
  kOfTiny,    ///< where P may be subnormal; else there are none of them
  kGroupKinds,
  // The logits, until coefficients take their places.
  kLogitX = kOfError,
  kLogitRadius = kOfRescale,
  kLogitError = kOfMass
};
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

/** A pair from its query to its verdict. */
struct PairWork {
  int32_t row, head; ///< row -1: there is none
  int32_t begin, visible, tiles;
  int32_t claim; ///< 0: left to the host
  int32_t sink, align;
  int32_t vague, replayed; ///< of the replay: a weight may be anything; T1 applies
  int64_t slots;           ///< of its first key
  int64_t first_tile;      ///< of the launch's
  double query_max, worst; ///< worst: as lse_enclosure takes it
  RowNumbers numbers;
  TailErrors tail;
  OmegaRow omega;
  ReplayScale scale;
  ReplayNumbers replay;
  Logit sunk;                      ///< of the sink
  double sunk_error, sunk_rescale; ///< w omega, rescale_mass
};

/** What a unit leaves of a pair. */
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

/** Of a pair and a component, when all units are joined. */
struct PairColumn {
  ColumnSums sums;
  ReplaySums replayed;
  double mid; ///< of the exact output, before its scale
};

struct GroupCall {
  TierCall tiers;
  const int32_t *states;      ///< of all rows: the first tile of each state, counted from the row's
  const int64_t *first_state; ///< [rows + 1]

  // Of one launch.
  const KeyGroup *groups;
  int32_t num_groups, num_units;
  int32_t unit_keys; ///< of a unit, a multiple of kTileKeys
  int32_t stripes;   ///< of a pair
  int64_t slots;
  double *keys;          ///< [kinds][slots]
  PairWork *pairs;       ///< [groups, kGroupPairs]
  TileView *views;       ///< of all pairs
  TileErrors *errors;    ///< likewise
  LogitPart *logits;     ///< [units, kGroupPairs]
  ValuePart *values;     ///< likewise
  WeightPart *weights;   ///< [pairs, stripes]
  ReplayPart *replays;   ///< likewise
  double *sums;          ///< [units, kGroupPairs, kGroupSums, dims]
  float *ranges;         ///< [units, kGroupPairs, 2, dims]: least and largest v
  double *centered;      ///< [units, kGroupPairs, 2, dims]: around o, around the replayed one
  PairColumn *columns;   ///< [pairs, dims]
  TierElement *elements; ///< [teams, tiers, dims + 1]

  ORACLE_HOST_DEVICE double *kind(int k) const { return keys + k * slots; }
  ORACLE_HOST_DEVICE int64_t unit_pair(int unit, int index) const {
    return int64_t{unit} * kGroupPairs + index;
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
  int64_t bytes;       ///< of scratch
  int32_t units;       ///< wanted at once
  int32_t least_tiles; ///< of a unit, of kTileKeys keys
};

struct GroupPlan {
  std::vector<KeyGroup> groups;
  std::vector<GroupWave> waves;
  std::vector<int32_t> states;
  std::vector<int64_t> first_state;
};
GroupPlan plan_groups(const AttentionRows &rows, const TierArrays &arrays, bool tiny,
                      const GroupSizes &sizes);

inline constexpr int kGroupArrays = kTierArrays + 3;

/** All but what belongs to a launch; `groups` gets the plan's. */
GroupCall make_group_call(const AttentionRows &rows, const CallOutputs &outputs,
                          const KernelModel &model, const TierArrays &arrays, const GroupPlan &plan,
                          const Place &place);

/** Gives a launch its memory: `place(bytes)` is asked for each array, in the same order. */
template <class Reserve>
void place_wave(GroupCall &call, const GroupWave &wave, const KeyGroup *groups, int64_t teams,
                Reserve reserve) {
  const auto array = [&]<class T>(T *&to, int64_t count) {
    void *at = reserve(static_cast<size_t>(count) * sizeof(T));
    to = static_cast<T *>(at);
  };
  const int64_t units = int64_t{wave.units} * kGroupPairs;
  const int64_t pairs = int64_t{wave.groups} * kGroupPairs, dims = call.tiers.base.dims;
  call.groups = groups + wave.first_group;
  call.num_groups = wave.groups;
  call.num_units = wave.units;
  call.unit_keys = wave.unit_keys;
  call.stripes = wave.stripes;
  call.slots = wave.slots;
  array(call.keys, wave.slots * (call.tiers.base.subnormal != 0 ? kGroupKinds : kOfTiny));
  array(call.pairs, pairs);
  array(call.views, wave.tiles);
  array(call.errors, wave.tiles);
  array(call.logits, units);
  array(call.values, units);
  array(call.weights, pairs * wave.stripes);
  array(call.replays, pairs * wave.stripes);
  array(call.sums, units * kGroupSums * dims);
  array(call.ranges, units * 2 * dims);
  array(call.centered, units * 2 * dims);
  array(call.columns, pairs * dims);
  array(call.elements, teams * TierScratch::kTiers * (dims + 1));
}
inline constexpr int kWaveArrays = 13;

} // namespace assay::oracle::device
