// SPDX-License-Identifier: Apache-2.0
// Property: more splits than keys (empty splits) give a result inside the budget, and exactly zero
// and -inf for rows without keys. Catches: empty splits that contribute NaN, unwritten partials
// read by the combine, division by zero keys per split.
#include <algorithm>

#include "properties/invariants/invariants.h"
#include "properties/relate/budget.h"
#include "properties/relate/outcome.h"

namespace assay {

CheckResult more_partitions_than_keys(const Problem &p, Sut &sut) {
  if (!sut.can_split()) return CheckResult::discard("the kernel has one partition");
  if (p.batch == 0) return CheckResult::discard("no rows");
  Problem cut = p;
  std::vector<int> lens = p.seq_lens;
  for (const CascadeLevel &level : p.levels)
    lens.insert(lens.end(), level.lens.begin(), level.lens.end());
  int longest = lens.empty() ? 0 : *std::max_element(lens.begin(), lens.end());
  // Long rows would need launches larger than this property is worth: cut them.
  constexpr int kLongest = 60;
  if (longest > kLongest) {
    for (int &n : cut.seq_lens)
      n = std::min(n, kLongest);
    for (CascadeLevel &level : cut.levels)
      for (int &n : level.lens)
        n = std::min(n, kLongest);
    if (cut.placement == Placement::kExplicit) cut.placement = Placement::kReversed;
    cut.page_ids.clear();
    longest = kLongest;
  }
  cut.num_splits = longest + 1 + pick(p, 0x3e7, 4);
  Outcome run = run_problem(cut, sut);
  if (!run.ok()) return run.check;
  return inside_budget(run, sut);
}

} // namespace assay
