// SPDX-License-Identifier: Apache-2.0
// Finds the tree, by one algorithm on both sides. The device runs each step on all threads of a
// block, with a barrier behind it. The host runs each step in a loop.
#pragma once

#include "kernels/plan/plan_build.h"
#include "kernels/plan/tree_scratch.h"

namespace assay {

/// A Side has these functions:
///   get(p), set(p, value)    read and write scratch memory
///   load(p), store(p, value), store_record(p, value)   read inputs and write outputs
///   each(n, f)               calls f(i) for all i below n. All calls have returned at its end
///   each_by_warp(n, f)       does the same with a warp per i, so that f may call what follows
///   set_by_one(p, value)     writes scratch memory, once for the warp
///   sum(n, f)                returns the sum of f(i) for all i below n
///   least(n, f)              returns the smallest f(i) that is not negative, or -1. Both may also
///                            be called outside each_by_warp
///   shared_pages(in, a, b, first, count)   returns how many pages the rows a and b of the page
///                            table begin with alike. Both rows have at least `count` pages, and
///                            the first `first` are known to be alike
template <class Side>
class TreeFinder {
public:
  ASSAY_HOST_DEVICE TreeFinder(const TreeInput &in, const TreeOutput &out, TreeScratch &scratch,
                               Side side)
      : in_(in), s_(in.shape), out_(out), t_(scratch), side_(side) {}

  ASSAY_HOST_DEVICE void run() {
    side_.each(s_.batch, [&](int r) {
      set(t_.group + r, 0);
      set(t_.page + r, 0);
      set(t_.begin + r, 0);
      for (int l = 0; l < kTreeLevels; ++l)
        set(t_.spot[l] + r, -1);
    });
    int32_t nodes = 0;
    for (int round = 0; round <= kTreeLevels; ++round) {
      find_next(round == kTreeLevels);
      if (round > 0) nodes += add_nodes(round - 1, nodes);
      if (!descend()) break;
    }
    write(is_worth_it(nodes) ? nodes : 0);
  }

private:
  static_assert(kMaxTreeBatch <= 1 << kSpotBits);

  template <class T>
  ASSAY_HOST_DEVICE T get(const T *p) const {
    return side_.get(p);
  }
  template <class T>
  ASSAY_HOST_DEVICE void set(T *p, T value) const {
    side_.set(p, value);
  }
  /// Pages of a request that can be shared: those whose keys its first query token sees.
  ASSAY_HOST_DEVICE int32_t pages_of(int r) const {
    const int32_t keys = side_.load(in_.seq_lens + r) - (s_.q_len - 1);
    return keys > 0 ? keys / s_.page_size : 0;
  }
  ASSAY_HOST_DEVICE PrefixNode node(int32_t n) const {
    const PrefixNode *p = t_.nodes + n;
    return {get(&p->request), get(&p->first_member), get(&p->members),
            get(&p->copies),  get(&p->begin),        get(&p->end)};
  }
  /// Stands inside each_by_warp.
  ASSAY_HOST_DEVICE void set_node(int32_t n, const PrefixNode &node) const {
    PrefixNode *p = t_.nodes + n;
    side_.set_by_one(&p->request, node.request);
    side_.set_by_one(&p->first_member, node.first_member);
    side_.set_by_one(&p->members, node.members);
    side_.set_by_one(&p->copies, node.copies);
    side_.set_by_one(&p->begin, node.begin);
    side_.set_by_one(&p->end, node.end);
  }
  ASSAY_HOST_DEVICE const int32_t *list_of(int r) const {
    return in_.list_of(r, [&](const int32_t *p) { return side_.load(p); });
  }
  ASSAY_HOST_DEVICE int32_t end_of_group(int r) const {
    return get(t_.page + r) * s_.page_size / kStartKeys * kStartKeys;
  }

  /// Finds the groups of the next round: the requests of a group that have the same next page. A
  /// request without a next page, or alone with it, shares no more.
  ASSAY_HOST_DEVICE void find_next(bool last) {
    side_.each(s_.batch, [&](int r) {
      const int32_t page = get(t_.page + r), group = get(t_.group + r);
      int64_t tag = -1;
      if (!last && group >= 0 && pages_of(r) > page)
        tag = int64_t{group} << 32 | static_cast<uint32_t>(side_.load(list_of(r) + page));
      set(t_.tag + r, tag);
    });
    side_.each(s_.batch, [&](int r) {
      const int64_t tag = get(t_.tag + r);
      int32_t first = -1, size = 0, rank = 0;
      for (int o = 0; tag >= 0 && o < s_.batch; ++o)
        if (get(t_.tag + o) == tag) {
          if (size == 0) first = o;
          ++size;
          rank += o < r ? 1 : 0;
        }
      set(t_.next + r, size > 1 ? first : -1);
      set(t_.next_size + r, size);
      set(t_.next_rank + r, rank);
    });
  }

  /// Whether a request leads a group whose newest keys become a node.
  ASSAY_HOST_DEVICE bool leads_node(int r) const {
    return get(t_.group + r) == r && get(t_.copies + r) > 0;
  }

  /// Makes a node of the newest keys of each group, where that pays. Returns the number of nodes.
  ASSAY_HOST_DEVICE int32_t add_nodes(int level, int32_t before) {
    side_.each_by_warp(s_.batch, [&](int r) {
      if (get(t_.group + r) != r) return;
      PrefixNode node{};
      node.request = r;
      node.begin = get(t_.begin + r);
      node.end = end_of_group(r);
      node.members = get(t_.size + r);
      node.copies = side_.sum(s_.batch, [&](int o) {
        const bool reads = get(t_.next + o) < 0 || get(t_.next + o) == o;
        return get(t_.group + o) == r && reads ? 1 : 0;
      });
      side_.set_by_one(t_.copies + r, is_worth_a_node(s_, node) ? node.copies : 0);
    });
    side_.each_by_warp(s_.batch, [&](int r) {
      if (!leads_node(r)) return;
      const int32_t index = before + side_.sum(r, [&](int o) { return leads_node(o) ? 1 : 0; });
      const int32_t first =
          side_.sum(r, [&](int o) { return leads_node(o) ? get(t_.size + o) : 0; });
      side_.set_by_one(t_.value + r, index);
      set_node(index, {r, level * s_.batch + first, get(t_.size + r), get(t_.copies + r),
                       get(t_.begin + r), end_of_group(r)});
    });
    side_.each(s_.batch, [&](int r) {
      const int32_t group = get(t_.group + r);
      if (group < 0 || get(t_.copies + group) == 0) return;
      const int32_t index = get(t_.value + group), rank = get(t_.rank + r);
      side_.store(out_.members + get(&t_.nodes[index].first_member) + rank,
                  static_cast<int32_t>(r));
      int l = 0;
      while (get(t_.spot[l] + r) >= 0)
        ++l;
      set(t_.spot[l] + r, index << kSpotBits | rank);
      set(t_.begin + r, end_of_group(r));
    });
    return side_.sum(s_.batch, [&](int r) { return leads_node(r) ? 1 : 0; });
  }

  /// Moves to the groups of the next round. Returns whether there are any.
  ASSAY_HOST_DEVICE bool descend() {
    side_.each_by_warp(s_.batch, [&](int r) {
      const int32_t first = get(t_.next + r);
      if (first < 0) return;
      const int32_t own = pages_of(r), others = pages_of(first), page = get(t_.page + r);
      const int32_t both = own < others ? own : others;
      side_.set_by_one(t_.value + r,
                       first == r ? own : side_.shared_pages(in_, r, first, page + 1, both));
    });
    side_.each_by_warp(s_.batch, [&](int r) {
      if (get(t_.next + r) != r) return;
      side_.set_by_one(t_.copies + r, side_.least(s_.batch, [&](int o) {
        return get(t_.next + o) == r ? get(t_.value + o) : -1;
      }));
    });
    side_.each(s_.batch, [&](int r) {
      const int32_t group = get(t_.next + r);
      set(t_.group + r, group);
      if (group < 0) return;
      set(t_.page + r, get(t_.copies + group));
      set(t_.size + r, get(t_.next_size + r));
      set(t_.rank + r, get(t_.next_rank + r));
    });
    return side_.sum(s_.batch, [&](int r) { return get(t_.group + r) >= 0 ? 1 : 0; }) > 0;
  }

  ASSAY_HOST_DEVICE bool is_worth_it(int32_t nodes) const {
    int64_t gain = 0;
    for (int32_t n = 0; n < nodes; ++n)
      gain += gain_of(s_, node(n));
    return nodes > 0 && (s_.splits > 0 || gain > kH200.min_gain);
  }

  /// The tiles of an item: the cheapest of the candidates that fit, or 0 where none fits.
  ASSAY_HOST_DEVICE int32_t choose_tiles(int32_t nodes) {
    int32_t longest = 0;
    for (int32_t n = 0; n < nodes; ++n) {
      const PrefixNode found = node(n);
      const int32_t tiles = tiles_of(found.end - found.begin, s_.tile);
      if (tiles > longest) longest = tiles;
    }
    side_.each(kMaxNodeSplits, [&](int i) {
      // The last candidate does not cut at all, in case a forced number of splits does not fit.
      const int32_t tiles = i + 1 == kMaxNodeSplits ? longest : candidate_tiles(s_, longest, i);
      int64_t items = 0, states = 0;
      for (int32_t n = 0; n < nodes; ++n) {
        const PrefixNode found = node(n);
        const int32_t splits = node_splits(s_, found, tiles);
        items += node_items(s_, found, splits);
        states += node_states(s_, found, splits);
      }
      int64_t cost = 0; // 0: does not fit
      if (items <= kMaxTreeItems && states <= s_.max_rows)
        cost = s_.splits > 0 ? i + int64_t{1}
                             : cut_cost(s_, items, states, tiles, (longest + tiles - 1) / tiles);
      set(t_.cost + i, cost);
    });
    int best = -1;
    for (int i = 0; i < kMaxNodeSplits; ++i)
      if (get(t_.cost + i) > 0 && (best < 0 || get(t_.cost + i) < get(t_.cost + best))) best = i;
    if (best < 0) return 0;
    return best + 1 == kMaxNodeSplits ? longest : candidate_tiles(s_, longest, best);
  }

  /// Sums, for every node, the items and the states of the nodes in front of it.
  ASSAY_HOST_DEVICE void sum_nodes(int32_t nodes, int32_t tiles) {
    side_.each(nodes + 1, [&](int n) {
      int64_t items = 0, states = 0;
      for (int32_t o = 0; o < n; ++o) {
        const PrefixNode found = node(o);
        const int32_t splits = node_splits(s_, found, tiles);
        items += node_items(s_, found, splits);
        states += node_states(s_, found, splits);
      }
      set(t_.items + n, static_cast<int32_t>(items));
      set(t_.states + n, static_cast<int32_t>(states));
    });
  }

  ASSAY_HOST_DEVICE void write(int32_t nodes) {
    const int32_t tiles = nodes > 0 ? choose_tiles(nodes) : 0;
    if (tiles == 0) nodes = 0;
    sum_nodes(nodes, tiles);
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

  const TreeInput &in_;
  const PrefixTreeShape &s_;
  const TreeOutput &out_;
  TreeScratch &t_;
  Side side_;
};

} // namespace assay
