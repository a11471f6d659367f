// SPDX-License-Identifier: Apache-2.0
// The row as one error: one set of roundings of the weights makes all its elements, so that in
// every direction u |u.(O' - O)| is at most what those roundings give along u. Statement and
// proof: oracle/BOUNDS.md, section 3.
#pragma once

#include <cmath>
#include <span>
#include <vector>

#include "oracle/bounds/joint_formulas.h"

namespace assay::oracle {

struct RowProblem;
struct RowWork;

/** Errors of P.V in a direction, where every state's partial sums are known to be no longer than the
    row's keys make them. Factors of what they multiply. */
struct PartialSums {
  double keys = 0.0;   ///< half of the spread and of the result
  double states = 0.0; ///< the spread
  double once = 0.0;   ///< sum |u_i| A_i
};

/** What the bound of a direction is computed from; empty where it does not apply. */
struct JointRow : JointScalars {
  std::vector<JointKey> keys;
  std::vector<double> center;       ///< O before its scales
  std::vector<double> blur;         ///< per |u_i|: how well O and an element of V are known
  std::vector<double> elements;     ///< per |u_i|: what an element may be off by on its own
  std::vector<double> accumulation; ///< likewise by errors of P.V
  std::vector<double> result;       ///< limit of |O| before its scales
  PartialSums partial;              ///< zeros: only `accumulation` holds

  bool applies() const { return !elements.empty(); }
};

/** At most so long is any partial sum of weights times values, per |u|: the square root of the largest
    eigenvalue of sum w v v^T. O(keys * dims * min(keys, dims)) and 7 products of matrices of that
    minimum: only for rows that it may decide. */
double spread_of(const float *v, const JointRow &row);

/** `v`: [keys, dims]; `u`: [dims], 0 where an element has no claim; `spread`: as above, if it is
    known. O(keys * dims). */
JointTerms joint_bound(const float *v, const JointRow &row, std::span<const double> u,
                       double spread = INFINITY);

/** Prepares a row whose sums, enclosures (before their scales) and T0 budgets are known. */
JointRow joint_row(const RowProblem &problem, const RowWork &work, std::span<const ColumnSums> sums,
                   std::span<const Enclosure> before, std::span<const BudgetTerms> t0);

} // namespace assay::oracle
