// SPDX-License-Identifier: Apache-2.0
// Property: the page size never changes the result beyond rounding. Catches: last-page bounds,
// page / slot arithmetic, tiles that straddle pages. Within bound, pairwise.
#include "properties/invariants/invariants.h"
#include "properties/relate/outcome.h"
#include "properties/relate/relation.h"

namespace assay {

CheckResult page_size_invariance(const Problem &p, Sut &sut) {
  Problem plain = p;
  // Sharing is by page, so it would change the keys.
  plain.sharing = Sharing::kNone;
  if (plain.placement == Placement::kExplicit) plain.placement = Placement::kReversed;
  plain.page_ids.clear();
  Outcome first = run_problem(plain, sut);
  if (!first.ok()) return first.check;
  static constexpr int kSizes[] = {1, 2, 3, 16, 17, 64};
  auto other_size = [&](int size) {
    int next = kSizes[pick(p, 0x9a9e, 6)];
    return next == size ? size + 1 : next;
  };
  Problem other = plain;
  if (p.family == Family::kPaged) other.page_size = other_size(p.page_size);
  for (CascadeLevel &level : other.levels)
    level.page_size = other_size(level.page_size);
  Outcome second = run_problem(other, sut);
  if (!second.ok()) return second.check;
  return all_related(first, second, Relation{}, sut, "another page size");
}

} // namespace assay
