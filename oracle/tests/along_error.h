// SPDX-License-Identifier: Apache-2.0
// A row along its error as the host's sums have it, for what a GPU's text says of the same.
#pragma once

#include <cmath>
#include <vector>

#include "oracle/bounds/attention_row.h"
#include "oracle/device/tiers.h"

namespace assay::oracle::test {

struct AlongOfHost {
  double ratio = NAN;    ///< NaN: it is not judged as one; 0 where nothing errs
  double of_least = NAN; ///< of what is allowed without errors of P.V
};

/// `v`: the row's values, or the outputs of its live states.
inline AlongOfHost along_error(const float *v, const RowReference &row,
                               const std::vector<float> &o) {
  if (!row.joint.applies()) return {};
  std::vector<double> u(o.size());
  double length = 0.0;
  bool errs = false;
  for (size_t i = 0; i < u.size(); ++i) {
    u[i] = static_cast<double>(o[i]) - row.o[i].mid;
    length += u[i] * u[i];
    errs = errs || u[i] != 0.0;
  }
  const JointTerms allowed = joint_bound(v, row.joint, u);
  if (errs && !std::isfinite(allowed.total)) return {};
  if (length == 0.0) return {0.0, 0.0}; // nothing errs, or less than squares can be
  return {length / allowed.total, length / (allowed.total - allowed.accumulation)};
}

/// What is said of a pair that is inside is what the host's sums say.
inline bool same_as_one(const TierRow &ours, const AlongOfHost &host) {
  if (std::isnan(host.ratio)) return ours.worst[4] < 0.0 && ours.near == 0;
  const bool near = host.of_least > kNearlyOutside;
  const bool boundary = std::fabs(host.of_least - kNearlyOutside) < 1e-6;
  return same_row_ratio(ours.worst[4], host.ratio) && (boundary || near == (ours.near != 0));
}

} // namespace assay::oracle::test
