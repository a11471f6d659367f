// SPDX-License-Identifier: Apache-2.0
// Property: (a b) c equals a (b c) within the sum of their bounds. Catches: LSE of a merge that is
// not the LSE of the union, weights renormalised twice. Within bound, pairwise.
#include "properties/invariants/invariants.h"
#include "properties/relate/merge_tree.h"

namespace assay {

CheckResult merge_associative(const Problem &p, Sut &sut) {
  CheckResult result;
  auto leaves = merge_leaves(p, 3);
  StateBlock ab = merge_children(p, sut, {&leaves[0], &leaves[1]}, result);
  StateBlock left = merge_children(p, sut, {&ab, &leaves[2]}, result);
  StateBlock bc = merge_children(p, sut, {&leaves[1], &leaves[2]}, result);
  StateBlock right = merge_children(p, sut, {&leaves[0], &bc}, result);
  if (!result.passed()) return result;
  return same_merge(p, left, right, "regrouped");
}

} // namespace assay
