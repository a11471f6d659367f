// SPDX-License-Identifier: Apache-2.0
// Cuts the nodes of a prefix tree into items and writes the tree, by one algorithm on both sides
// (find_prefix_tree.h).
#pragma once

#include "kernels/plan/plan_build.h"
#include "kernels/plan/tree_scratch.h"

namespace assay {

/// Writes the tree of the nodes in the scratch memory. Side: find_prefix_tree.h.
template <class Side>
class TreeWriter {
public:
  ASSAY_HOST_DEVICE TreeWriter(const TreeInput &in, const TreeOutput &out, TreeScratch &scratch,
                               Side side)
      : in_(in), s_(in.shape), out_(out), t_(scratch), side_(side) {}

  /// Writes a tree of the first `nodes` nodes, or one without nodes where they gain too little.
  ASSAY_HOST_DEVICE void write(int32_t nodes) {
    if (nodes > 0) look_at(nodes);
    if (!is_worth_it(nodes)) nodes = 0;
    const int32_t tiles = nodes > 0 ? choose_tiles(nodes) : 0;
    if (tiles == 0) nodes = 0;
    sum_nodes(nodes, tiles);
    write_items(nodes, tiles);
    write_requests(nodes, tiles);
  }

protected:
  template <class T>
  ASSAY_HOST_DEVICE T get(const T *p) const {
    return side_.get(p);
  }
  template <class T>
  ASSAY_HOST_DEVICE void set(T *p, T value) const {
    side_.set(p, value);
  }
  ASSAY_HOST_DEVICE PrefixNode node(int32_t n) const {
    const PrefixNode *p = t_.nodes + n;
    return {get(&p->request), get(&p->first_member), get(&p->members),
            get(&p->copies),  get(&p->begin),        get(&p->end)};
  }

  const TreeInput &in_;
  const PrefixTreeShape &s_;
  const TreeOutput &out_;
  TreeScratch &t_;
  Side side_;

private:
  ASSAY_HOST_DEVICE int32_t tiles_of_node(int32_t n) const {
    const PrefixNode found = node(n);
    return tiles_of(found.end - found.begin, s_.tile);
  }

  /// Notes what all nodes gain, and how long the longest is.
  ASSAY_HOST_DEVICE void look_at(int32_t nodes) {
    side_.each_by_warp(2, [&](int i) {
      if (i == 0)
        side_.set_by_one(&t_.gain, side_.sum(nodes, [&](int n) { return gain_of(s_, node(n)); }));
      else
        side_.set_by_one(&t_.longest, INT32_MAX - side_.least(nodes, [&](int n) {
          return INT32_MAX - tiles_of_node(n);
        }));
    });
  }

  ASSAY_HOST_DEVICE bool is_worth_it(int32_t nodes) const {
    return nodes > 0 && (s_.splits > 0 || get(&t_.gain) > kH200.min_gain);
  }

  /// Items and states of nodes.
  struct TreeSize {
    int64_t items = 0, states = 0;
    ASSAY_HOST_DEVICE void operator+=(const TreeSize &other) {
      items += other.items;
      states += other.states;
    }
  };
  ASSAY_HOST_DEVICE TreeSize size_of(int32_t n, int32_t tiles) const {
    const PrefixNode found = node(n);
    const int32_t splits = node_splits(s_, found, tiles);
    return {node_items(s_, found, splits), node_states(s_, found, splits)};
  }

  /// The tiles of an item: the cheapest of the candidates that fit, or 0 where none fits.
  ASSAY_HOST_DEVICE int32_t choose_tiles(int32_t nodes) {
    const int32_t longest = get(&t_.longest);
    const auto candidate = [&](int i) {
      // The last candidate does not cut at all, in case a forced number of splits does not fit.
      return i + 1 == kMaxNodeSplits ? longest : candidate_tiles(s_, longest, i);
    };
    side_.each_by_warp(kMaxNodeSplits, [&](int i) {
      const int32_t tiles = candidate(i);
      int64_t cost = -1; // as the candidate before
      if (i == 0 || tiles != candidate(i - 1)) {
        cost = 0; // does not fit
        const auto [items, states] = side_.sum(nodes, [&](int n) { return size_of(n, tiles); });
        if (items <= kMaxTreeItems && states <= s_.max_rows)
          cost = s_.splits > 0 ? i + int64_t{1}
                               : cut_cost(s_, items, states, tiles, (longest + tiles - 1) / tiles);
      }
      side_.set_by_one(t_.cost + i, cost);
    });
    const auto cost_of = [&](int i) { return get(t_.cost + i) > 0 ? get(t_.cost + i) : -1; };
    const int64_t cost = side_.least(kMaxNodeSplits, cost_of);
    if (cost < 0) return 0;
    return candidate(
        side_.least(kMaxNodeSplits, [&](int i) { return get(t_.cost + i) == cost ? i : -1; }));
  }

  /// Sums, for every node, the items and the states of the nodes in front of it.
  ASSAY_HOST_DEVICE void sum_nodes(int32_t nodes, int32_t tiles) {
    const auto size = [&](int n) { return n < nodes ? size_of(n, tiles) : TreeSize{}; };
    side_.prefix(
        nodes + 1, [&](int n) { return static_cast<int32_t>(size(n).items); }, t_.items);
    side_.prefix(
        nodes + 1, [&](int n) { return static_cast<int32_t>(size(n).states); }, t_.states);
  }

  ASSAY_HOST_DEVICE void write_items(int32_t nodes, int32_t tiles) {
    const int32_t items = get(t_.items + nodes);
    side_.each(items + s_.blocks, [&](int i) {
      TreeItem item{};
      if (i < items) {
        int32_t low = 0, high = nodes; // items[low] <= i < items[high]
        while (high - low > 1) {
          const int32_t mid = (low + high) / 2;
          (get(t_.items + mid) <= i ? low : high) = mid;
        }
        const PrefixNode found = node(low);
        item = tree_item(s_, found, node_splits(s_, found, tiles), get(t_.states + low),
                         i - get(t_.items + low));
      }
      side_.store_record(out_.items + i, item);
    });
  }

  ASSAY_HOST_DEVICE void write_requests(int32_t nodes, int32_t tiles) {
    side_.each(s_.batch, [&](int r) {
      for (int l = 0; l < kTreeLevels; ++l) {
        const int32_t spot = nodes > 0 ? get(t_.spot[l] + r) : -1;
        TreeCoord coord{};
        if (spot >= 0) {
          const int32_t n = spot >> kSpotBits;
          const PrefixNode found = node(n);
          coord.rows = found.members * s_.query_rows;
          coord.first_state = get(t_.states + n) + (spot & (kMaxTreeBatch - 1)) * s_.query_rows;
          coord.splits = node_splits(s_, found, tiles);
        }
        side_.store_record(out_.coords + r * kTreeLevels + l, coord);
      }
      side_.store(out_.covered + r, nodes > 0 ? get(t_.begin + r) : 0);
    });
  }
};

} // namespace assay
