// SPDX-License-Identifier: Apache-2.0
#include "properties/tools/gate/red_line.h"

#include <algorithm>

#include <fmt/format.h>

namespace assay::gate {

const std::vector<LineId> &line_ids() {
  static const std::vector<LineId> kIds = {
      {"new-finding", false},
      {"flaky-finding", false},
      {"kept-finding", false},
      {"no-report", false},
      {"refused", false},
      {"does-not-build", false},
      {"harness", false},
      {"timed-outputs", false},
      {"declaration-wider", true},
      {"kernel-gone", true},
      {"envelope-narrower", true},
      {"not-proved", true},
      {"ledger", true},
      {"judge-changed", true},
      {"finding-deleted", true},
      {"finding-weakened", true},
      {"mutant-deleted", true},
      {"mutant-changed", true},
      {"special-case", true},
      {"error-grew", true},
      {"counters-grew", true},
      {"figures", true},
      {"slower", true},
  };
  return kIds;
}

std::string why_not_accepted(const std::string &id) {
  const auto &ids = line_ids();
  const auto at = std::find_if(ids.begin(), ids.end(), [&](const LineId &i) { return i.id == id; });
  if (at != ids.end() && at->acceptable) return "";
  if (at != ids.end()) return "no person can let that pass: it is mended, or does not go in";
  std::string all;
  for (const LineId &i : ids)
    if (i.acceptable) all += (all.empty() ? "" : ", ") + i.id;
  return fmt::format("no red line has this id; those that a person may accept: {}", all);
}

} // namespace assay::gate
