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
///   3. Every partial state lies in the workspace, is written by one item only, and belongs to one
///      place of one request, which has no empty place in front of it.
///   4. For every query row of a request and every kv head the items have each of its first
///      `covered` keys once, a multiple of kStartKeys.
///   5. With a forced number of splits all keys that kTreeLevels levels can share are covered, in
///      parts that cut the longest node into so many of whole tiles; in uncut nodes where the
///      states of those do not fit into the workspace, or their items into a plan; and none where
///      these do not fit either. A group of pages takes a level, also where it is too short for a
///      node. What pays without a forced number is not looked at.
/// Whatever stands in `tree`, only [kMaxTreeItems + blocks] items, the places and the members of
/// the batch are read.
std::string tree_violation(const TreeInput &in, const PrefixTree &tree,
                           std::span<const int32_t> covered);

} // namespace assay
