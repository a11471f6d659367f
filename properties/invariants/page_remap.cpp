// SPDX-License-Identifier: Apache-2.0
// Property: pages shared between requests, or used twice by one, give the same bits as private
// copies with the same contents. Catches: per-page state, writes to the cache, page ids used as
// logical positions, keys shared that are not the same. Bitwise, but for pages of several requests
// where the kernel declares that a row's bits may follow the batch: there within the bound.
#include "properties/call/materialise.h"
#include "properties/invariants/invariants.h"
#include "properties/relate/budget.h"
#include "properties/relate/outcome.h"
#include "properties/relate/relation.h"

namespace assay {

CheckResult page_remap(const Problem &p, Sut &sut) {
  Problem shared = p;
  if (shared.sharing == Sharing::kNone)
    shared.sharing = pick(p, 0x5a, 2) == 0 ? Sharing::kPrefix : Sharing::kDuplicate;
  if (shared.placement == Placement::kExplicit) {
    shared.placement = Placement::kReversed; // the number of pages may have changed
    shared.page_ids.clear();
  }
  Outcome first = run_problem(shared, sut);
  if (!first.ok()) return first.check;
  Outcome second = run_tensors(materialise(shared, {.unshare = true}), sut);
  if (!second.ok()) return second.check;
  const char *what = "private copies of shared pages";
  if (shared.sharing == Sharing::kDuplicate || !bits_follow_batch(shared, sut))
    return same_result(first, second, sut, what);
  CheckResult result = inside_budget(first, sut);
  return result.also(inside_budget(second, sut))
      .also(all_related(first, second, Relation{}, sut, what));
}

} // namespace assay
