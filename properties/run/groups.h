// SPDX-License-Identifier: Apache-2.0
// One mistake of a kernel is one group of findings, however many properties see it.
#pragma once

#include <atomic>
#include <functional>
#include <memory>
#include <vector>

#include "properties/run/cause.h"

namespace assay {

/// A run with a finding, and what its mistake looks like: worked out once, for all who say it.
struct NamedFinding {
  explicit NamedFinding(const PropertyRun &run);
  const PropertyRun *run;
  Cause cause;
  std::string fingerprint;

  const Finding &finding() const { return run->first[0]; }
};

struct FindingGroup {
  /// Findings of one kernel. The first is the sharpest: in the order of the table of properties,
  /// which begins with within_budget. Its fingerprint is the group's.
  std::vector<NamedFinding> members;

  const Finding &first() const { return members[0].finding(); }
};

struct GroupOptions {
  std::function<std::unique_ptr<Sut>(const assay_kernel &)> sut;
  double seconds = 20; ///< per kernel; afterwards the findings' own cases decide
  const std::atomic<bool> *stop = nullptr; ///< likewise when it turns true
};

/// Groups these runs, which have a finding each; every run is in exactly one group.
std::vector<FindingGroup> group_findings(const std::vector<const PropertyRun *> &found,
                                         const GroupOptions &options);
/// Every finding of the run in exactly one group, kernels and groups in the order of the run.
std::vector<FindingGroup> group_findings(const RunSummary &summary, const GroupOptions &options);

} // namespace assay
