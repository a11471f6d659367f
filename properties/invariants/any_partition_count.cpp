// SPDX-License-Identifier: Apache-2.0
// Property: any number of splits gives what one split gives. Catches: unnormalised split averages,
// split bounds, partials in the wrong slot, splits without keys, combine limits. Within bound,
// pairwise against one split, and each split count within its own budget.
#include <algorithm>

#include "properties/invariants/invariants.h"
#include "properties/relate/budget.h"
#include "properties/relate/outcome.h"
#include "properties/relate/relation.h"

namespace assay {

namespace {

/// Two, few and many, and any number; which, the case decides. Of a large batch fewer: a launch has
/// a block for each row and split.
std::vector<int> split_counts(const Problem &p) {
  constexpr int kBlocks = 1024;
  const int few = pick(p, 0x59, 2) == 0 ? 3 : 7, many = pick(p, 0x5a, 2) == 0 ? 32 : 100;
  const int most = std::max(2, kBlocks / std::max(1, query_rows(p) * p.num_kv_heads));
  std::vector<int> out;
  for (const int splits : {2, few, many, 2 + pick(p, 0x591, 60)})
    if (std::count(out.begin(), out.end(), std::min(splits, most)) == 0)
      out.push_back(std::min(splits, most));
  return out;
}

} // namespace

CheckResult any_partition_count(const Problem &p, Sut &sut) {
  if (!sut.can_split()) return CheckResult::discard("the kernel has one partition");
  Problem dense = p;
  dense.num_splits = 1;
  Outcome whole = run_problem(dense, sut);
  if (!whole.ok()) return whole.check;
  CheckResult result = inside_budget(whole, sut);
  for (int splits : split_counts(p)) {
    if (!result.passed()) return result;
    Problem cut = p;
    cut.num_splits = splits;
    Outcome parts = run_problem(cut, sut);
    if (parts.check.kind == CheckResult::Kind::kDiscard) continue; // beyond the kernel's limit
    if (!parts.ok()) return parts.check;
    std::string what = std::to_string(splits) + " splits instead of one";
    result.also(inside_budget(parts, sut)).also(all_related(whole, parts, Relation{}, sut, what));
  }
  return result;
}

} // namespace assay
