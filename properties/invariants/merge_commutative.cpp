// SPDX-License-Identifier: Apache-2.0
// Property: merge(a, b) equals merge(b, a) within the sum of their bounds. Catches: a maximum or a
// denominator taken from one side. Within bound, pairwise.
#include "properties/invariants/invariants.h"
#include "properties/relate/merge_tree.h"

namespace assay {

CheckResult merge_commutative(const Problem &p, Sut &sut) {
  CheckResult result;
  auto leaves = merge_leaves(p, 2);
  StateBlock ab = merge_children(p, sut, {&leaves[0], &leaves[1]}, result);
  StateBlock ba = merge_children(p, sut, {&leaves[1], &leaves[0]}, result);
  if (!result.passed()) return result;
  return same_merge(p, ab, ba, "sides swapped");
}

} // namespace assay
