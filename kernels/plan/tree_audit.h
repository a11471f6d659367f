// SPDX-License-Identifier: Apache-2.0
// What a sound prefix tree is, for the tests and the fuzzer.
#pragma once

#include "kernels/plan/host_tree.h"

#include <span>
#include <string>

namespace assay {

/// The first way in which a tree is unsound for the page tables and lengths of `in`, or empty.
/// `covered` has the keys that nodes hold of each request, [in.shape.batch]. Sound means:
///   1. There are at most kMaxTreeItems items, and in.shape.blocks empty ones behind them.
///   2. The requests of an item have its pages alike and in front of what their first query token
///      does not see; it starts at a multiple of kStartKeys.
///   3. Every partial state lies in the workspace, is written by one item only, and is where the
///      places of its request say; every state of a place is written.
///   4. Of every (request, kv head) the items have each of its first `covered` keys once.
///   5. With a forced number of splits, nodes have that many or fewer, and all keys that
///      kTreeLevels levels can share are covered; nothing, where the states of uncut nodes do not
///      fit into the workspace or their items into a plan. What pays without one is not looked at.
std::string tree_violation(const TreeInput &in, const PrefixTree &tree,
                           std::span<const int32_t> covered);

} // namespace assay
