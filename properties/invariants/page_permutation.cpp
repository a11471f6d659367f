// SPDX-License-Identifier: Apache-2.0
// Property: moving pages inside the pool, together with the page table, never changes a bit.
// Catches: page stride errors, pointers cached across pages, page ids truncated or ignored,
// layouts mixed up. Bitwise.
#include "properties/invariants/invariants.h"
#include "properties/relate/budget.h"
#include "properties/relate/outcome.h"

namespace assay {

CheckResult page_permutation(const Problem &p, Sut &sut) {
  Outcome first = run_problem(p, sut);
  if (!first.ok()) return first.check;
  Problem other = p;
  other.page_ids.clear();
  other.placement_seed = 0;
  // Spare pages move the pool's live pages as well.
  other.spare_pages = p.spare_pages + 1 + pick(p, 0x9a6e, 3);
  other.placement =
      p.placement == Placement::kReversed ? Placement::kShuffled : Placement::kReversed;
  Outcome second = run_problem(other, sut);
  if (!second.ok()) return second.check;
  return same_result(first, second, sut, "pages moved in the pool");
}

} // namespace assay
