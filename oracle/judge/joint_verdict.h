// SPDX-License-Identifier: Apache-2.0
// Decides a row as one: is its error what one set of roundings can make of it?
#pragma once

#include <functional>
#include <span>
#include <vector>

#include "oracle/judge/verdict.h"

namespace assay::oracle {

/** A direction in which a row was looked at, of length 1. */
struct Direction {
  std::vector<double> u; ///< [dims], 0 where an element has no claim
  double got = 0.0;      ///< u.O as it was written
  Enclosure exact;       ///< u.O
  JointTerms allowed;

  double ratio() const { return std::fabs(got - exact.mid) / allowed.total; }
};

/**
 * The direction, of those tried, in which the row is farthest from what is allowed: along the error,
 * and where that is between half and all of it, along better ones. `u` is empty where the row has no
 * joint bound, or no error.
 */
Direction farthest_direction(const float *v, const RowReference &row, const float *o);

/** The exact outputs of a row at a precision, by dim. */
using ExactOutputs = std::function<std::function<Interval(int dim)>(int precision)>;

/** Takes the row's verdict into its report, whose elements are all inside. `v`: its values, or the
    outputs of its live states. */
void judge_joint(Report &report, const float *v, const RowReference &row, const float *o,
                 const ExactOutputs &exact, int request, int head);

} // namespace assay::oracle
