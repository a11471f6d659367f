// SPDX-License-Identifier: Apache-2.0
// Property: merging along any tree agrees with merging left to right within the sum of the bounds.
// Catches: merges that hold for leaves but not for merged states. Within bound, pairwise.
#include <numeric>

#include "properties/invariants/invariants.h"
#include "properties/relate/merge_tree.h"
#include "properties/relate/outcome.h"

namespace assay {

CheckResult merge_any_tree(const Problem &p, Sut &sut) {
  CheckResult result;
  auto leaves = merge_leaves(p, leaf_count(p));
  std::vector<int> order(leaves.size());
  std::iota(order.begin(), order.end(), 0);
  StateBlock fold = merge_in_order(p, sut, leaves, order, result);
  // A random binary tree that keeps the order: merge a random pair of neighbours until one is left.
  std::vector<StateBlock> nodes = leaves;
  while (nodes.size() > 1) {
    int at = pick(p, static_cast<uint32_t>(nodes.size()), static_cast<int>(nodes.size()) - 1);
    nodes[at] = merge_children(p, sut, {&nodes[at], &nodes[at + 1]}, result);
    nodes.erase(nodes.begin() + at + 1);
  }
  if (!result.passed()) return result;
  return same_merge(p, fold, nodes[0], "another tree");
}

} // namespace assay
