// SPDX-License-Identifier: Apache-2.0
// What a sound prefix tree is, for the tests and the fuzzer.
#pragma once

#include "kernels/plan/host_tree.h"

#include <span>
#include <string>

namespace assay {

/// The first way in which a tree is unsound for the page tables and lengths of `in`, or empty.
/// `covered` [in.shape.batch] says how many keys of each request nodes hold. Sound means:
///   1. There are at most kMaxTreeItems items, and in.shape.blocks empty ones behind them.
///   2. All requests of an item have the same pages for its keys, and the first query token of each
///      sees these keys. An item starts at a multiple of kStartKeys.
///   3. Every partial state lies in the workspace, is written by one item only, and is merged for
///      one request at one level. That request has a node on every level above.
///   4. For every query row and every kv head of a request, the items have each of its first
///      `covered` keys once. `covered` is a multiple of kStartKeys.
///   5. A forced number of splits covers all keys that kTreeLevels levels can share. The longest
///      node is then cut into so many parts of whole tiles, and others into parts as long. Where
///      the states of the parts do not fit into the workspace, or their items into a plan, no node
///      is cut. Where the uncut nodes do not fit either, no key is covered. A group of pages takes
///      a level, also where it is too short for a node.
/// The audit does not ask whether sharing pays where no number of splits is forced. Whatever stands
/// in `tree`, it reads no more than [kMaxTreeItems + blocks] items, and the coords and the members
/// of the batch.
std::string tree_violation(const TreeInput &in, const PrefixTree &tree,
                           std::span<const int32_t> covered);

} // namespace assay
