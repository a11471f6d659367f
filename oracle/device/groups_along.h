// SPDX-License-Identifier: Apache-2.0
// Internal: a pair as one (joint_formulas.h): the direction of its error, its keys along that, and
// its verdict. The bound is a norm, so a direction has any length. One text for the host and for a
// GPU.
#pragma once

#include "oracle/bounds/joint_formulas.h"
#include "oracle/device/groups_keys.h"
#include "oracle/device/row_verdict.h"

namespace assay::oracle::device {

ORACLE_HOST_DEVICE inline double output_of(const Call &call, const PairWork &pair, int dim) {
  return load_element(call.o_dtype, call.o,
                      call.o_at[pair.row] + pair.head * call.out_stride_head + dim);
}

/// Behind join_columns: the error of every element. A replay is sharper than the row as one.
template <class Team>
ORACLE_HOST_DEVICE inline void aim_along_error(const GroupCall &call, Team &team, int number,
                                               PairWork &pair) {
  team.sync(); // what join_columns says of the pair
  const RowNumbers &row = pair.numbers;
  const bool applies = pair.claim != 0 && pair.replayed == 0 && call.exact == 0 && has_joint(row);
  const int dims = call.base.dims;
  const double scale = output_scale(row);
  double o = 0.0, blur = 0.0;
  bool errs = false;
  for (int dim = team.rank(); applies && dim < dims; dim += team.size()) {
    PairColumn &column = call.columns[int64_t{number} * dims + dim];
    const double error = output_of(call.base, pair, dim) - column.mid * scale;
    column.error = fabs(error) < HUGE_VAL ? error : 0.0; // else the host judges the element
    const Enclosure exact = enclose_column(row, column.sums);
    o += column.error * column.mid;
    blur += fabs(column.error) * joint_blur(row, dims, exact, column.sums.largest());
    errs = errs || column.error != 0.0;
  }
  o = team.sum(o);
  blur = team.sum(blur);
  errs = team.any(errs);
  if (team.rank() != 0) return;
  pair.aimed = errs;
  if (!errs) return;
  pair.along.o = o;
  pair.along.blur = blur;
  pair.joint = joint_scalars(row);
}

/// Sums over keys along the error.
struct AlongSums : AlongPart {
  ORACLE_HOST_DEVICE AlongSums() : AlongPart{} {}

  /// `value`: u.v of the key.
  ORACLE_HOST_DEVICE void add(const PairWork &pair, const JointKey &key, double alignment_of_key,
                              double value) {
    add_joint_key(pair.joint, pair.along, key, value, sums);
    rounding += key.subnormal;
    alignment += alignment_of_key;
  }
  ORACLE_HOST_DEVICE void join(const AlongPart &part) {
    sums.errors += part.sums.errors;
    sums.shares += part.sums.shares;
    sums.subnormal += part.sums.subnormal;
    sums.farthest = fmax(sums.farthest, part.sums.farthest);
    sums.moved = fmax(sums.moved, part.sums.moved);
    rounding += part.rounding;
    alignment += part.alignment;
  }
};

/// What the keys of a pair are scaled by.
struct AlongScale {
  double inverse;   ///< of coefficients, to weights that sum to 1
  double alignment; ///< of a subnormal weight's product

  ORACLE_HOST_DEVICE AlongScale(const GroupCall &call, const PairWork &pair)
      : inverse(0x1p-800 / (pair.numbers.z * pair.numbers.mass_low)), alignment(0.0) {
    if (call.base.subnormal == 0) return;
    const RowNumbers &row = pair.numbers;
    const double sum = subnormal_sum(row, subnormal_slack(row), row.z, row.mass_low);
    alignment = row.model.alignment * row.model.p_normal / sum;
  }
};

/// The coefficients of a key.
struct AlongKey {
  double weight = 0.0, error = 0.0;
  double tiny = 0.0; ///< both parts of SubnormalCost
};
ORACLE_HOST_DEVICE inline AlongKey along_key(const GroupCall &call, int64_t slot) {
  AlongKey key{call.kind(kOfWeight)[slot], call.kind(kOfError)[slot]};
  if (call.base.subnormal != 0) key.tiny = call.kind(call.tiny())[slot];
  return key;
}

/// `value`: u.v of the key.
ORACLE_HOST_DEVICE inline void add_along(const PairWork &pair, const AlongScale &scale,
                                         const AlongKey &of, double value, AlongSums &sums) {
  const double tiny = of.tiny * 0x1p-800, alignment = tiny > 0.0 ? scale.alignment : 0.0;
  const JointKey key{of.error * scale.inverse, (of.weight + of.error) * scale.inverse,
                     fmax(tiny - alignment, 0.0)};
  sums.add(pair, key, alignment, value);
}

/// The sink, whose value is zero.
ORACLE_HOST_DEVICE inline void add_sink_along(const GroupCall &call, const PairWork &pair,
                                              AlongSums &sums) {
  const RowNumbers &row = pair.numbers;
  KeyWeight key;
  weigh_key(row.x_max, pair.sunk, key);
  bound_key(row, pair.omega, pair.sunk, key);
  SubnormalCost cost;
  if (call.base.subnormal != 0)
    cost = subnormal_cost(row, subnormal_slack(row), row.z, row.mass_low, key);
  sums.add(pair, joint_key(row, cost.rounding, key), cost.alignment, 0.0);
}

/// What the team's units leave, and the sink.
template <class Team>
ORACLE_HOST_DEVICE inline AlongSums join_along(const GroupCall &call, Team &team, int number) {
  const KeyGroup &group = call.groups[number / kGroupPairs];
  AlongSums all;
  for (int unit = team.rank(); unit < group.units; unit += team.size())
    all.join(call.along[call.unit_pair(group.first_unit + unit, number % kGroupPairs)]);
  const PairWork &pair = call.pairs[number];
  if (pair.sink != 0 && team.rank() == 0) add_sink_along(call, pair, all);
  all.sums.errors = team.sum(all.sums.errors);
  all.sums.shares = team.sum(all.sums.shares);
  all.sums.subnormal = team.sum(all.sums.subnormal);
  all.sums.farthest = team.most(all.sums.farthest);
  all.sums.moved = team.most(all.sums.moved);
  all.rounding = team.sum(all.rounding);
  all.alignment = team.sum(all.alignment);
  return all;
}

/// Behind judge_first, whose elements its threads have.
template <class Team>
ORACLE_HOST_DEVICE inline void judge_along_error(const GroupCall &call, Team &team, int number,
                                                 RowVerdict<Team> &verdict) {
  const PairWork &pair = call.pairs[number];
  if (pair.aimed == 0) return;
  const AlongSums keys = join_along(call, team, number);
  const RowNumbers &row = pair.numbers;
  JointScalars joint = pair.joint;
  joint.subnormal = keys.rounding;
  if (!(joint.entry() < 0.5)) return;
  AlongError error;
  const int dims = call.base.dims;
  for (int dim = team.rank(); dim < dims; dim += team.size()) {
    const PairColumn &column = call.columns[int64_t{number} * dims + dim];
    const TierElement &own = verdict.element(0, dim);
    const Enclosure before = enclose_column(row, column.sums);
    error.add(column.error, own.got, own.reference,
              joint_element(row, joint, before, own.budget, keys.alignment, column.sums.largest()));
  }
  error.over(team);
  JointAlong along = pair.along;
  along.elements = error.elements;
  along.accumulation = error.accumulation;
  verdict.judge_row(ratio_along(error, dims, joint_terms(joint, along, keys.sums)));
}

} // namespace assay::oracle::device
