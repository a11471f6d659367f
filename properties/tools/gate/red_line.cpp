// SPDX-License-Identifier: Apache-2.0
#include "properties/tools/gate/red_line.h"

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

static const LineId *find_id(const std::string &id) {
  for (const LineId &known : line_ids())
    if (known.id == id) return &known;
  return nullptr;
}

RedLine red_line(const std::string &id, const std::string &kernel, const std::string &text) {
  const LineId *known = find_id(id);
  return {.id = id,
          .text = text,
          .kernel = kernel,
          .acceptable = known != nullptr && known->acceptable};
}

std::string why_not_accepted(const std::string &id) {
  const LineId *known = find_id(id);
  if (known != nullptr && known->acceptable) return "";
  if (known != nullptr) return "no person can let that pass: it is mended, or does not go in";
  std::string all;
  for (const LineId &i : line_ids())
    if (i.acceptable) all += (all.empty() ? "" : ", ") + i.id;
  return fmt::format("no red line has this id; those that a person may accept: {}", all);
}

} // namespace assay::gate
