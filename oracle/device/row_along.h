// SPDX-License-Identifier: Apache-2.0
// Internal: a row against its bound along its error. One text for the host and for a GPU.
#pragma once

#include "oracle/bounds/joint_formulas.h"

namespace assay::oracle::device {

/** What the elements of a thread, and then of all, come to along the error, of any length. */
struct AlongError {
  double length = 0.0, radius = 0.0, size = 0.0; ///< u.e, how well it is known, sum |u_i O_i|
  double elements = 0.0, accumulation = 0.0;     ///< as JointAlong has them

  ORACLE_HOST_DEVICE void add(double u, double got, const Enclosure &exact,
                              const JointElement &own) {
    const double part = fabs(u);
    length += u * (got - exact.mid);
    radius += part * exact.rad;
    size += part * (fabs(got) + fabs(exact.mid));
    elements += part * own.others;
    accumulation += part * own.accumulation;
  }
  template <class Team>
  ORACLE_HOST_DEVICE void over(Team &team) {
    length = team.sum(length);
    radius = team.sum(radius);
    size = team.sum(size);
    elements = team.sum(elements);
    accumulation = team.sum(accumulation);
  }
};

/** What is said of a row as one, as TierRow has it. */
struct RowRatio {
  double ratio = -1.0; ///< infinity: that is for the host to say
  bool near = false;

  ORACLE_HOST_DEVICE bool open() const { return !(ratio < HUGE_VAL); }
};

/** Where half of what is allowed is used, errors of P.V apart, the host tries other directions, and
    how long partial sums of P.V can be. */
ORACLE_HOST_DEVICE inline RowRatio ratio_along(const AlongError &error, int dims,
                                               const JointTerms &allowed) {
  if (!(allowed.total < HUGE_VAL)) return {};
  const double distance = fabs(error.length);
  const double reach = distance + error.radius * kSlack + error.size * dims * 0x1p-50;
  // Both are 0 where the errors are smaller than squares can be.
  const double ratio = distance > 0.0 ? distance / allowed.total : 0.0;
  return {reach <= allowed.total ? ratio : HUGE_VAL,
          distance > kNearlyOutside * (allowed.total - allowed.accumulation)};
}

} // namespace assay::oracle::device
