// SPDX-License-Identifier: Apache-2.0
// The oracle as the invariants see it: a verdict on a run, and the bound of one row for relations
// between runs. Every function here takes the declared arithmetic of the kernel under test.
#pragma once

#include <functional>
#include <vector>

#include "oracle/bounds/merge.h"
#include "oracle/bounds/attention_row.h"
#include "oracle/exact/row_input.h"
#include "properties/invariants/common.h"

namespace assay {

/// The oracle's verdict on every element of a run, with its worst ratios; `detail` names the worst
/// element, its enclosure and the budget by term.
CheckResult inside_budget(const Outcome &run, const Sut &sut);

/// How far a correct kernel may be from the exact result of one (row, head).
struct RowBound {
  bool claim = false; ///< false: the oracle says nothing about this row (fp32 range may be left)
  bool empty = false; ///< no keys, or no live state
  std::vector<double> o, o_radius; ///< exact value (midpoint) and allowed distance, per dim
  double lse = 0, lse_radius = 0;
};
RowBound row_bound(const Outcome &run, const Sut &sut, int row, int head);

/// One attention row with every tier that applies, T2 included, and the inputs it comes from.
struct OracleRow {
  std::vector<float> q;
  oracle::KeySet keys;
  oracle::RowReference reference;
};
OracleRow oracle_row(const Outcome &run, const Sut &sut, int row, int head);

/// Into how many parts that are merged through (O, LSE) an attention row is cut: as declared, or at
/// most.
int row_splits(const Outcome &run, const Sut &sut, int row, int head);

/// An output as a number that distances can be taken from: infinity, which a value beyond the range
/// rounds to, becomes the smallest magnitude that does. NaN stays NaN.
double comparable(float x, Dtype dtype);

/// Fails unless |got - want| <= radius; rounding of the comparison itself is allowed for.
CheckResult within(double got, double want, double radius, const std::string &element,
                   const std::string &what);

/// A map of exact results: O becomes scale * O + offset, LSE becomes LSE + lse_offset.
struct Relation {
  double scale = 1, offset = 0;
  double lse_offset = 0; ///< in the case's base
  double lse_slack = 0;  ///< what is not known about lse_offset
  double o_slack = 0;    ///< and about O, relative to it
};
/// Fails unless O and LSE of `b` are what `relation` makes of those of `a`, within the sum of the
/// two bounds. Uses the oracle for the radii only, so it also sees what oracle and kernel might
/// both misread.
CheckResult related(const Outcome &a, int row_a, int head_a, const Outcome &b, int row_b,
                    int head_b, const Relation &relation, const Sut &sut, const std::string &what);
/// As above for every (row, head) of two runs of equal shape; the relation may depend on the head.
CheckResult all_related(const Outcome &a, const Outcome &b, const Relation &relation,
                        const Sut &sut, const std::string &what);
CheckResult all_related(const Outcome &a, const Outcome &b,
                        const std::function<Relation(int head)> &relation, const Sut &sut,
                        const std::string &what);

} // namespace assay
