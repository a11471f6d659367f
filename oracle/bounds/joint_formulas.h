// SPDX-License-Identifier: Apache-2.0
// Internal: what one set of roundings makes of a whole row, in a direction u. Statement and proof:
// oracle/BOUNDS.md, section 3, "The row". One text for the host and for a GPU.
#pragma once

#include "oracle/bounds/key_formulas.h"

namespace assay::oracle {

/** What a row has in every direction. */
struct JointScalars {
  bool sums_rounded = false; ///< the row sum may add weights as they are rounded for V
  double p_unit = 0.0;       ///< unit roundoff of the weights
  double subnormal = 0.0;    ///< what subnormal weights are off by, together, beside a sum of 1
  double normalise = 0.0;    ///< every other error of the denominator and what follows it, relative
  double scale = 1.0;        ///< |v_scale / o_scale|

  /** What rounded weights may move their sum by, relative. */
  ORACLE_HOST_DEVICE double entry() const { return sums_rounded ? p_unit + subnormal : 0.0; }
};

/** A row has a bound as one. False: its weights may be anything, or O has no scale. */
ORACLE_HOST_DEVICE inline bool has_joint(const RowNumbers &row) {
  return !row.coarse && !row.vague && row.mass_low > 0.0 && fabs(output_scale(row)) > 0.0;
}

/** All but `subnormal`, which is of the keys. */
ORACLE_HOST_DEVICE inline JointScalars joint_scalars(const RowNumbers &row) {
  JointScalars joint;
  joint.sums_rounded = row.model.sums_rounded_p && row.model.p_unit > 0.0;
  joint.p_unit = row.model.p_unit;
  joint.scale = fabs(output_scale(row));
  // The rounding of weights that the sum adds has a term of its own.
  ErrorModel apart = row.model;
  if (apart.sums_rounded_p) apart.entry_unit = apart.entry_floor = 0.0;
  joint.normalise = tail_errors(apart, row.shape).normalise;
  return joint;
}

/** How well O and the elements of V are known in a component, before the scales of O. */
ORACLE_HOST_DEVICE inline double joint_blur(const RowNumbers &row, int dims,
                                            const Enclosure &before, double largest_value) {
  // Sums of so many products, of elements that are known to kv_unit.
  return before.rad + (dims * 0x1p-50 + row.kv_unit) * largest_value;
}

/** What errors of the numerator grow by. */
ORACLE_HOST_DEVICE inline double joint_growth(const JointScalars &joint) {
  return (1.0 + joint.normalise) / (1.0 - joint.entry());
}

/** What an element may be off by on its own. */
struct JointElement {
  double accumulation = 0.0, others = 0.0;
};

/** `before`: O before its scales; `t`: T0; `alignment`: what that of subnormal weights adds per
    largest |v|. */
ORACLE_HOST_DEVICE inline JointElement joint_element(const RowNumbers &row,
                                                     const JointScalars &joint,
                                                     const Enclosure &before, const BudgetTerms &t,
                                                     double alignment, double largest_value) {
  const RowFeatures &f = row.facts.features;
  // One rounding of a product with a scale; a division may be an inverse and one more product.
  const double scaling = f.v_scale == 1.0f && f.o_scale == 1.0f
                             ? 0.0
                             : 3 * kU * (joint.scale * (fabs(before.mid) + before.rad) + t.total);
  const double summed = t.merge + joint.scale * alignment * largest_value;
  return {t.accumulation * joint_growth(joint) * kSlack,
          (summed / (1.0 - joint.entry()) + t.flush + t.output_rounding + scaling) * kSlack};
}

/** Limits for a key, on the scale of weights that sum to 1. */
struct JointKey {
  double error = 0.0;     ///< of its weight before that is rounded
  double share = 0.0;     ///< its weight
  double subnormal = 0.0; ///< what its rounding is off by beside p_unit of it
};

ORACLE_HOST_DEVICE inline JointKey joint_key(const RowNumbers &row, double subnormal,
                                             const KeyWeight &key) {
  const double sum = row.z * row.mass_low;
  return {key.weight * key.omega / sum, key.weight * (1.0 + key.omega) / sum, subnormal};
}

/** From here on other directions are tried: they raise a ratio by a fifth or so, never twofold. */
inline constexpr double kNearlyOutside = 0.5;

/** A direction u, beside the keys. */
struct JointAlong {
  double o = 0.0;            ///< u.o
  double blur = 0.0;         ///< what u.o and u.v may be off by as they are evaluated
  double elements = 0.0;     ///< sum |u_i| times what element i may be off by on its own
  double accumulation = 0.0; ///< likewise: what P.V adds up with errors
};

/** Sums over the keys, in a direction. */
struct JointSums {
  double errors = 0.0, shares = 0.0, subnormal = 0.0;
  double farthest = 0.0; ///< largest |u.(v - o)|
  double moved = 0.0;    ///< largest of what a key's rounding multiplies
};

/** `value`: u.v of a key. */
ORACLE_HOST_DEVICE inline void add_joint_key(const JointScalars &row, const JointAlong &along,
                                             const JointKey &key, double value, JointSums &sums) {
  const double centered = fabs(value - along.o) + along.blur;
  sums.errors += key.error * centered;
  sums.farthest = fmax(sums.farthest, centered);
  double moved = fabs(value) + along.blur;
  // The same rounding stands in the sum, or V meets P in two parts and the sum in one; or a kernel
  // of narrower arithmetic adds weights that are not rounded.
  if (row.sums_rounded)
    moved = fmax(moved, fmax(centered, fabs(along.o) + along.blur + row.p_unit * moved));
  sums.shares += key.share * moved;
  sums.subnormal += key.subnormal * moved;
  sums.moved = fmax(sums.moved, moved);
}

/** |u.(O' - O)| at most, by cause. */
struct JointTerms {
  double weights = 0.0, rounding = 0.0, normalisation = 0.0;
  double accumulation = 0.0, elements = 0.0; ///< what differs from element to element
  double total = 0.0;
};

ORACLE_HOST_DEVICE inline JointTerms joint_terms(const JointScalars &row, const JointAlong &along,
                                                 const JointSums &sums) {
  JointTerms t;
  // A mean of values is no farther from o than the farthest of them.
  const double weights = fmin(sums.errors, sums.farthest);
  const double rounded = row.p_unit * fmin(sums.shares, sums.moved) + sums.subnormal;
  const double rounding = (rounded + row.entry() * weights) / (1.0 - row.entry());
  t.weights = row.scale * weights;
  t.rounding = row.scale * rounding;
  t.normalisation = row.scale * row.normalise * (fabs(along.o) + along.blur + weights + rounding);
  t.accumulation = along.accumulation;
  t.elements = along.elements;
  t.total = (t.weights + t.rounding + t.normalisation + t.accumulation + t.elements) * kSlack;
  return t;
}

} // namespace assay::oracle
