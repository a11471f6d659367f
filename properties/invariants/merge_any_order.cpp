// SPDX-License-Identifier: Apache-2.0
// Property: merging the same states in any order agrees within the sum of the bounds. Catches: what
// depends on the first or the last state. Within bound, pairwise.
#include <algorithm>
#include <numeric>

#include "properties/invariants/invariants.h"
#include "properties/relate/merge_tree.h"
#include "properties/relate/outcome.h"

namespace assay {

CheckResult merge_any_order(const Problem &p, Sut &sut) {
  CheckResult result;
  auto leaves = merge_leaves(p, leaf_count(p));
  std::vector<int> order(leaves.size());
  std::iota(order.begin(), order.end(), 0);
  StateBlock forward = merge_in_order(p, sut, leaves, order, result);
  std::reverse(order.begin(), order.end());
  StateBlock reversed = merge_in_order(p, sut, leaves, order, result);
  for (size_t i = order.size() - 1; i > 0; --i)
    std::swap(order[i], order[pick(p, static_cast<uint32_t>(i), static_cast<int>(i) + 1)]);
  StateBlock shuffled = merge_in_order(p, sut, leaves, order, result);
  if (!result.passed()) return result;
  return same_merge(p, forward, reversed, "reversed order")
      .also(same_merge(p, forward, shuffled, "shuffled order"));
}

} // namespace assay
