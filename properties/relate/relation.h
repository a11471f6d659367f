// SPDX-License-Identifier: Apache-2.0
// Two runs, or a run and known values, within the bounds of both.
#pragma once

#include <functional>
#include <string>

#include "properties/relate/bounds.h"
#include "properties/relate/outcome.h"

namespace assay {

/// An output as a number that distances can be taken from: infinity, which a value beyond the range
/// rounds to, becomes the smallest magnitude that does. NaN stays NaN.
double comparable(float x, Dtype dtype);

/// One output; dim -1 is the LSE.
struct Element {
  int row, head, dim;
};

/// Fails unless |got - want| <= radius; rounding of the comparison itself is allowed for.
CheckResult within(double got, double want, double radius, const Element &element,
                   const std::string &what);

/// A map of exact results: O becomes scale * O + offset, LSE becomes LSE + lse_offset.
struct Relation {
  double scale = 1, offset = 0;
  double lse_offset = 0; ///< in the case's base
  double lse_slack = 0;  ///< what is not known about lse_offset
  double o_slack = 0;    ///< and about O, relative to it
};
/// Fails unless O and LSE of a row of `b` are what `relation` makes of those of a row of `a`,
/// within the sum of the two bounds. Uses the oracle for the radii only, so it also sees what
/// oracle and kernel might both misread.
CheckResult row_related(RunBounds &a, int row_a, int head_a, RunBounds &b, int row_b, int head_b,
                        const Relation &relation, const std::string &what);
/// As above for every (row, head) of two runs of equal shape; the relation may depend on the head.
CheckResult all_related(const Outcome &a, const Outcome &b, const Relation &relation, Sut &sut,
                        const std::string &what);
CheckResult all_related(const Outcome &a, const Outcome &b,
                        const std::function<Relation(int head)> &relation, Sut &sut,
                        const std::string &what);

} // namespace assay
