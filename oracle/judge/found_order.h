// SPDX-License-Identifier: Apache-2.0
// Which order of keys explains outputs whose kernel declares none, as data and in words.
#pragma once

#include <cstdint>
#include <string>

namespace assay::oracle {

/** How a kernel of a usual kind cuts a list of keys. */
struct OrderRule {
  int tile = 64;          ///< keys of a tile
  bool backwards = false; ///< tiles of a split from its last to its first
  int parts = 1;          ///< splits of about equal length; 0: one for every `unit` keys
  int unit = 0;           ///< a split holds a multiple of so many keys; 0: of whole tiles
  bool in_turn = false;   ///< tiles go to splits in turn; else a split is one range
  int states = 1;         ///< tiles of a split go to so many states in turn

  bool operator==(const OrderRule &) const = default;
};

enum class OrderState {
  kNotLookedFor, ///< the order is declared, or no tier depends on it
  kNone,         ///< no known order explains the rows
  kFound
};

/** What was found for a call. A pair is a (row, head) about which T1 says something. */
struct FoundOrder {
  OrderState state = OrderState::kNotLookedFor;
  OrderRule rule;         ///< that of the most rows
  int splits = 1;         ///< of the longest of those rows
  int rows = 0;           ///< rows that were looked at
  int rows_by_rule = 0;   ///< of those, the ones whose order it is
  int rows_otherwise = 0; ///< the ones with another known order
  uint64_t pairs = 0;     ///< of all rows that were looked at
  uint64_t explained = 0; ///< by the order that was found for their row
  uint64_t doubts = 0;    ///< pairs that no known order explains, in rows whose order is known
  int doubt_row = -1, doubt_head = -1; ///< the one farthest from its row's order
  double doubt_ratio = 0.0;            ///< its error, in what that order allows
};

/** "tiles of 128, 4 splits, backwards". */
std::string order_words(const OrderRule &rule, int splits);
/** That and how many pairs it explains, or why there is none; empty where none was looked for. */
std::string order_words(const FoundOrder &found);

} // namespace assay::oracle
