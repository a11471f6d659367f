// SPDX-License-Identifier: Apache-2.0
// Finding the tree: one algorithm for both sides. The device runs each step on all threads of a
// block with a barrier behind it, the host in loops.
#pragma once

#include "kernels/plan/plan_build.h"
#include "kernels/plan/prefix_tree.h"

namespace assay {

/// What the finder knows of requests and nodes while it works; on the device in shared memory.
struct TreeScratch {
  int32_t group[kMaxTreeBatch];  // first request of those that have shared all so far; -1: done
  int32_t page[kMaxTreeBatch];   // pages that the group shares
  int32_t begin[kMaxTreeBatch];  // keys in nodes so far
  int32_t key[kMaxTreeBatch];    // the next page
  int32_t next[kMaxTreeBatch];   // group after this round: first request with the same next page
  int32_t copies[kMaxTreeBatch]; // of the group's newest keys; 0: they become no node
  int32_t spot[kTreeLevels][kMaxTreeBatch]; // node << 10 | place among its requests; -1: none
  PrefixNode nodes[kMaxTreeNodes];
  int32_t items[kMaxTreeNodes + 1], states[kMaxTreeNodes + 1]; // of the nodes in front
  int64_t cost[kMaxNodeSplits];
};
inline constexpr int kSpotBits = 10;
static_assert(kMaxTreeBatch <= 1 << kSpotBits);

struct TreeInput {
  PrefixTreeShape shape;
  const int32_t *page_table, *seq_lens;
  int64_t page_table_stride;
};

/// Where a tree is written.
struct TreeOutput {
  TreeItem *items;
  TreePlace *places;
  int32_t *members, *covered;
};

/// Of a plan buffer: the tree at `base`.
inline TreeOutput tree_output(const PrefixTreeShape &s, void *base) {
  const PrefixTreeLayout l = prefix_tree_layout(s);
  auto *at = static_cast<char *>(base);
  return {reinterpret_cast<TreeItem *>(at + l.items), reinterpret_cast<TreePlace *>(at + l.places),
          reinterpret_cast<int32_t *>(at + l.members), reinterpret_cast<int32_t *>(at + l.covered)};
}

/// What a Side has:
///   get(p), set(p, value)    scratch
///   load(p), store(p, value), store_record(p, value)    inputs and outputs
///   each(n, f)               f(i) for all i below n; all are done at the end
///   each_by_warp(n, f)       likewise, so that f may call the next two
///   shared_pages(in, a, b, first, count)   rows a and b of the page table have `count` pages or
///                            more, of which the first `first` are alike: how many are
///   set_by_one(p, value)     scratch
template <class Side>
class TreeFinder {
public:
  ASSAY_PLAN_TEMPLATE TreeFinder(const TreeInput &in, const TreeOutput &out, TreeScratch &scratch,
                                 Side side)
      : in_(in), s_(in.shape), out_(out), t_(scratch), side_(side) {}

  ASSAY_PLAN_TEMPLATE void run() {
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
  template <class T>
  ASSAY_PLAN_TEMPLATE T get(const T *p) const {
    return side_.get(p);
  }
  template <class T>
  ASSAY_PLAN_TEMPLATE void set(T *p, T value) const {
    side_.set(p, value);
  }
  ASSAY_PLAN_TEMPLATE int32_t pages_of(int r) const {
    return side_.load(in_.seq_lens + r) / s_.page_size;
  }
  ASSAY_PLAN_TEMPLATE PrefixNode node(int32_t n) const {
    const PrefixNode *p = t_.nodes + n;
    return {get(&p->request), get(&p->first_member), get(&p->members),
            get(&p->copies),  get(&p->begin),        get(&p->end)};
  }
  ASSAY_PLAN_TEMPLATE void set_node(int32_t n, const PrefixNode &node) const {
    PrefixNode *p = t_.nodes + n;
    set(&p->request, node.request);
    set(&p->first_member, node.first_member);
    set(&p->members, node.members);
    set(&p->copies, node.copies);
    set(&p->begin, node.begin);
    set(&p->end, node.end);
  }
  /// How many r below `end` satisfy f(r).
  template <class F>
  ASSAY_PLAN_TEMPLATE int32_t count(int end, F f) const {
    int32_t n = 0;
    for (int r = 0; r < end; ++r)
      n += f(r) ? 1 : 0;
    return n;
  }

  /// The groups behind this round: requests of a group with the same next page. One that has no
  /// such page, or is alone with it, is done.
  ASSAY_PLAN_TEMPLATE void find_next(bool last) {
    side_.each(s_.batch, [&](int r) {
      const int32_t page = get(t_.page + r);
      const bool more = !last && get(t_.group + r) >= 0 && pages_of(r) > page;
      set(t_.copies + r, more ? get(t_.group + r) : -1);
      if (more) set(t_.key + r, side_.load(in_.page_table + r * in_.page_table_stride + page));
    });
    side_.each(s_.batch, [&](int r) {
      const int32_t group = get(t_.copies + r), key = group >= 0 ? get(t_.key + r) : 0;
      int32_t first = -1, alike = 0;
      for (int other = 0; group >= 0 && other < s_.batch; ++other)
        if (get(t_.copies + other) == group && get(t_.key + other) == key) {
          if (alike == 0) first = other;
          ++alike;
        }
      set(t_.next + r, alike > 1 ? first : -1);
    });
  }

  /// The newest keys of each group become a node where that pays; returns how many do.
  ASSAY_PLAN_TEMPLATE int32_t add_nodes(int level, int32_t before) {
    const auto node_of = [&](int r) {
      PrefixNode node{};
      const int32_t group = get(t_.group + r);
      node.request = group;
      node.begin = get(t_.begin + r);
      node.end = get(t_.page + r) * s_.page_size / kStartKeys * kStartKeys;
      node.members = count(s_.batch, [&](int o) { return get(t_.group + o) == group; });
      node.copies = count(s_.batch, [&](int o) {
        return get(t_.group + o) == group && (get(t_.next + o) < 0 || get(t_.next + o) == o);
      });
      return node;
    };
    side_.each(s_.batch, [&](int r) {
      int32_t copies = 0;
      if (get(t_.group + r) >= 0) {
        const PrefixNode node = node_of(r);
        if (is_worth_a_node(s_, node)) copies = node.copies;
      }
      set(t_.copies + r, copies);
    });
    const auto leads = [&](int o) { return get(t_.copies + o) > 0 && get(t_.group + o) == o; };
    side_.each(s_.batch, [&](int r) {
      if (get(t_.copies + r) == 0) return;
      const int32_t group = get(t_.group + r);
      const int32_t index = before + count(group, leads);
      const int32_t place = count(r, [&](int o) { return get(t_.group + o) == group; });
      const int32_t first = level * s_.batch + count(s_.batch, [&](int o) {
                              return get(t_.copies + o) > 0 && get(t_.group + o) < group;
                            });
      side_.store(out_.members + first + place, static_cast<int32_t>(r));
      int l = 0;
      while (get(t_.spot[l] + r) >= 0)
        ++l;
      set(t_.spot[l] + r, index << kSpotBits | place);
      if (group != r) return;
      PrefixNode node = node_of(r);
      node.first_member = first;
      set_node(index, node);
    });
    const int32_t added = count(s_.batch, leads);
    side_.each(s_.batch, [&](int r) {
      if (get(t_.copies + r) > 0)
        set(t_.begin + r, get(t_.page + r) * s_.page_size / kStartKeys * kStartKeys);
    });
    return added;
  }

  /// Moves to the next round's groups; whether there are any.
  ASSAY_PLAN_TEMPLATE bool descend() {
    side_.each_by_warp(s_.batch, [&](int r) {
      const int32_t first = get(t_.next + r);
      if (first < 0) return;
      const int32_t own = pages_of(r), others = pages_of(first), page = get(t_.page + r);
      const int32_t both = own < others ? own : others;
      side_.set_by_one(t_.key + r,
                       first == r ? own : side_.shared_pages(in_, r, first, page + 1, both));
    });
    side_.each(s_.batch, [&](int r) {
      const int32_t group = get(t_.next + r);
      int32_t least = -1;
      for (int o = 0; group >= 0 && o < s_.batch; ++o)
        if (get(t_.next + o) == group && (least < 0 || get(t_.key + o) < least))
          least = get(t_.key + o);
      set(t_.group + r, group);
      if (group >= 0) set(t_.page + r, least);
    });
    return count(s_.batch, [&](int r) { return get(t_.group + r) >= 0; }) > 0;
  }

  ASSAY_PLAN_TEMPLATE bool is_worth_it(int32_t nodes) const {
    int64_t gain = 0;
    for (int32_t n = 0; n < nodes; ++n)
      gain += gain_of(s_, node(n));
    return nodes > 0 && (s_.splits > 0 || gain > kLeastGain);
  }

  /// Tiles of an item, the cheapest of the candidates that fit; 0 if none does.
  ASSAY_PLAN_TEMPLATE int32_t choose_tiles(int32_t nodes) {
    int32_t longest = 0;
    for (int32_t n = 0; n < nodes; ++n) {
      const PrefixNode found = node(n);
      const int32_t tiles = tiles_of(found.end - found.begin, s_.tile);
      if (tiles > longest) longest = tiles;
    }
    side_.each(kMaxNodeSplits, [&](int i) {
      // The last candidate does not cut at all, should a forced number not fit.
      const int32_t tiles = i + 1 == kMaxNodeSplits ? longest : candidate_tiles(s_, longest, i);
      int64_t items = 0, states = 0;
      for (int32_t n = 0; n < nodes; ++n) {
        const PrefixNode found = node(n);
        const int32_t splits = node_splits(s_, found, tiles);
        items += node_items(s_, found, splits);
        states += node_states(s_, found, splits);
      }
      const bool fits = items <= kMaxTreeItems && states <= s_.max_rows;
      set(t_.cost + i,
          fits ? s_.splits > 0 ? i + int64_t{1} : cut_cost(s_, items, states, tiles) : int64_t{0});
    });
    int best = -1;
    for (int i = 0; i < kMaxNodeSplits; ++i)
      if (get(t_.cost + i) > 0 && (best < 0 || get(t_.cost + i) < get(t_.cost + best))) best = i;
    if (best < 0) return 0;
    return best + 1 == kMaxNodeSplits ? longest : candidate_tiles(s_, longest, best);
  }

  /// Items and states of the nodes in front of each.
  ASSAY_PLAN_TEMPLATE void sum_nodes(int32_t nodes, int32_t tiles) {
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

  ASSAY_PLAN_TEMPLATE void write(int32_t nodes) {
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
        TreePlace place{};
        if (spot >= 0) {
          const int32_t n = spot >> kSpotBits;
          const PrefixNode found = node(n);
          place.rows = found.members * s_.group;
          place.first_state = get(t_.states + n) + (spot & (kMaxTreeBatch - 1)) * s_.group;
          place.splits = node_splits(s_, found, tiles);
        }
        side_.store_record(out_.places + r * kTreeLevels + l, place);
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
