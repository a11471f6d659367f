// SPDX-License-Identifier: Apache-2.0
#include "oracle/judge/known_orders.h"

#include <algorithm>
#include <set>
#include <tuple>

namespace assay::oracle {
namespace {

constexpr int kLargestTile = 256;
constexpr int kMostSplits = 64;
constexpr int kLeastChunk = 32; ///< keys of a split: of fewer, their weights are hardly rounded

int parts_of(int whole, int part) { return (whole + part - 1) / part; }

/// Keys of a split.
int chunk_of(const OrderRule &rule, int length) {
  const int unit = rule.unit > 0 ? rule.unit : rule.tile;
  if (rule.parts == 0 || rule.in_turn) return unit;
  return std::max(1, parts_of(parts_of(length, unit), rule.parts)) * unit;
}

/// Appends the tiles of one split, which are counted from `anchor`.
void append_split(TileOrder &order, const OrderRule &rule, int split, int begin, int end) {
  const auto first = static_cast<std::ptrdiff_t>(order.size());
  for (int at = begin, tile = 0; at < end; at += rule.tile, ++tile)
    order.push_back({split, tile % rule.states, at, std::min(at + rule.tile, end)});
  if (rule.backwards) std::reverse(order.begin() + first, order.end());
}

TileOrder order_of_list(const OrderRule &rule, int length) {
  TileOrder order;
  if (rule.in_turn) {
    append_split(order, rule, 0, 0, length);
    for (KeyTile &tile : order)
      tile.split = tile.begin / rule.tile % rule.parts;
    return order;
  }
  const int chunk = chunk_of(rule, length);
  for (int at = 0, split = 0; at < length; at += chunk, ++split)
    append_split(order, rule, split, at, std::min(at + chunk, length));
  return order;
}

/// The order with one more cut: tiles are counted from `at` on, up to the end of the split.
TileOrder with_cut(const OrderRule &rule, int length, int at, bool new_split) {
  TileOrder order;
  const int chunk = rule.in_turn ? length : chunk_of(rule, length);
  for (int begin = 0, split = 0; begin < length; begin += chunk, ++split) {
    const int end = std::min(begin + chunk, length);
    if (at <= begin || at >= end) {
      append_split(order, rule, split, begin, end);
      continue;
    }
    const int behind = new_split ? length + split : split;
    if (rule.backwards) append_split(order, rule, behind, at, end);
    append_split(order, rule, split, begin, at);
    if (!rule.backwards) append_split(order, rule, behind, at, end);
  }
  return order;
}

std::vector<int> tiles_of(const assay_arithmetic &arithmetic) {
  std::vector<int> tiles;
  // The smallest of a declaration is the widest claim: kernels of it have that or more.
  for (int tile : {128, 64, 32, 256, 16, 48, 80, 96, 112, 144, 160, 176, 192})
    if (tile >= arithmetic.tile_tokens) tiles.push_back(tile);
  if (tiles.empty()) tiles.push_back(arithmetic.tile_tokens);
  return tiles;
}

std::vector<int> states_of(const assay_arithmetic &arithmetic) {
  std::vector<int> states{1};
  for (int count : {2, 4, 8})
    if (count <= arithmetic.max_parallel_states) states.push_back(count);
  return states;
}

/// Ways to cut a list into splits, with tiles of this size.
std::vector<OrderRule> cuts_of(OrderRule rule, int most) {
  std::vector<OrderRule> cuts{rule};
  for (rule.parts = 2; rule.parts <= std::min(most, kMostSplits); ++rule.parts)
    cuts.push_back(rule);
  for (int unit : {1, 16, 32})
    for (int parts : {2, 3, 4, 5, 6, 7, 8, 10, 12, 16, 24, 32, 48, 64}) {
      rule.unit = unit;
      rule.parts = parts;
      if (parts <= most) cuts.push_back(rule);
    }
  rule.parts = 0;
  for (rule.unit = 128; rule.unit <= 4096 && most > 1; rule.unit *= 2)
    cuts.push_back(rule);
  return cuts;
}

/// Splits that take tiles in turn: the same order as that of states that do, which is named first.
std::vector<OrderRule> turns_of(OrderRule rule, int most) {
  std::vector<OrderRule> turns;
  rule.in_turn = true;
  for (rule.parts = 2; rule.parts <= std::min(most, 32); rule.parts *= 2)
    turns.push_back(rule);
  return turns;
}

} // namespace

int splits_of(const OrderRule &rule, int length) {
  if (rule.in_turn) return std::min(rule.parts, std::max(1, parts_of(length, rule.tile)));
  return std::max(1, parts_of(length, chunk_of(rule, length)));
}

TileOrder order_of(const OrderRule &rule, const ListRange &range) {
  return clip_order(order_of_list(rule, range.length), range.begin, range.end);
}

std::vector<OrderRule> known_orders(const assay_arithmetic &arithmetic, int length) {
  std::vector<OrderRule> rules;
  std::set<std::tuple<int, bool, int, int, bool>> seen;
  const int most = std::max(1, arithmetic.max_splits);
  const auto add = [&](const OrderRule &rule) {
    const int splits = splits_of(rule, length);
    if (splits > most) return;
    if (splits > 1 && !rule.in_turn && chunk_of(rule, length) < kLeastChunk) return;
    const int keys = rule.in_turn ? splits : std::min(chunk_of(rule, length), length);
    // A list of one tile has no direction.
    if (splits == 1 && keys <= rule.tile && (!rule.backwards || rule.in_turn)) return;
    if (seen.emplace(rule.tile, rule.backwards, rule.states, keys, rule.in_turn).second)
      rules.push_back(rule);
  };
  const std::vector<int> tiles = tiles_of(arithmetic);
  for (int states : states_of(arithmetic))
    for (int tile : tiles)
      for (bool backwards : {true, false})
        for (const OrderRule &rule :
             cuts_of({.tile = tile, .backwards = backwards, .states = states}, most))
          add(rule);
  for (int tile : tiles)
    for (bool backwards : {true, false})
      for (const OrderRule &rule : turns_of({.tile = tile, .backwards = backwards}, most))
        add(rule);
  return rules;
}

void near_orders(const OrderRule &rule, const ListRange &range,
                 const std::function<void(const TileOrder &)> &take) {
  const auto hand_on = [&](const TileOrder &order) {
    take(clip_order(order, range.begin, range.end));
  };
  for (int parts : {rule.parts, 1})
    for (int tile = 1; tile <= kLargestTile; ++tile)
      for (bool backwards : {false, true}) {
        OrderRule other = rule;
        other.parts = parts;
        if (parts == 1) other.unit = 0, other.in_turn = false;
        other.tile = tile;
        other.backwards = backwards;
        hand_on(order_of_list(other, range.length));
      }
  for (int at = range.begin + 1; at < range.end; ++at)
    for (bool new_split : {false, true})
      hand_on(with_cut(rule, range.length, at, new_split));
}

} // namespace assay::oracle
