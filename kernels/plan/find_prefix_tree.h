// SPDX-License-Identifier: Apache-2.0
// Finds the tree, by one algorithm on both sides. The device runs each step on all threads of a
// block, with a barrier behind it. The host runs each step in a loop.
#pragma once

#include "kernels/plan/write_prefix_tree.h"

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
///   sort(keys, n)            sorts scratch memory, which has room for a power of two of keys
///   prefix(n, f, sums)       writes the sum of all f(o) with o < i to sums[i], and returns that of
///                            all. It is called outside each_by_warp
///   shared_pages(in, a, b, first, count)   returns how many pages the rows a and b of the page
///                            table begin with alike. Both rows have at least `count` pages, and
///                            the first `first` are known to be alike
template <class Side>
class TreeFinder : TreeWriter<Side> {
  using TreeWriter<Side>::get, TreeWriter<Side>::set, TreeWriter<Side>::in_, TreeWriter<Side>::s_,
      TreeWriter<Side>::out_, TreeWriter<Side>::t_, TreeWriter<Side>::side_;

public:
  using TreeWriter<Side>::TreeWriter;

  ASSAY_HOST_DEVICE void run() {
    side_.each(s_.batch, [&](int r) {
      set(t_.pages + r, pages_of(r));
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
    this->write(nodes);
  }

private:
  static_assert(kMaxTreeBatch <= 1 << kSpotBits);

  /// Pages of a request that can be shared: those whose keys its first query token sees.
  ASSAY_HOST_DEVICE int32_t pages_of(int r) const {
    const int32_t keys = side_.load(in_.seq_lens + r) - (s_.q_len - 1);
    return keys > 0 ? keys / s_.page_size : 0;
  }
  ASSAY_HOST_DEVICE void set_node(int32_t n, const PrefixNode &node) const {
    PrefixNode *p = t_.nodes + n;
    set(&p->request, node.request);
    set(&p->first_member, node.first_member);
    set(&p->members, node.members);
    set(&p->copies, node.copies);
    set(&p->begin, node.begin);
    set(&p->end, node.end);
  }
  ASSAY_HOST_DEVICE const int32_t *list_of(int r) const {
    return in_.list_of(r, [&](const int32_t *p) { return side_.load(p); });
  }
  ASSAY_HOST_DEVICE int32_t end_of_group(int r) const {
    return get(t_.page + r) * s_.page_size / kStartKeys * kStartKeys;
  }

  /// Finds the groups of the next round: the requests of a group that have the same next page. A
  /// request without a next page, or alone with it, shares no more. Such requests are neighbours
  /// once all are sorted by group, next page and index.
  ASSAY_HOST_DEVICE void find_next(bool last) {
    side_.each(s_.batch, [&](int r) {
      const int32_t page = get(t_.page + r), group = get(t_.group + r);
      int64_t key = kNoPage;
      if (!last && group >= 0 && get(t_.pages + r) > page)
        key = first_key(group) |
              int64_t{static_cast<uint32_t>(side_.load(list_of(r) + page))} << kSpotBits | r;
      set(t_.key + r, key);
      set(t_.next + r, -1);
    });
    side_.sort(t_.key, s_.batch);
    side_.each(s_.batch, [&](int i) {
      const int64_t key = get(t_.key + i);
      if (key == kNoPage || (is_first(i) && is_first(i + 1))) return;
      const int first = place_of(key >> kSpotBits << kSpotBits);
      const int end = place_of(((key >> kSpotBits) + 1) << kSpotBits);
      const int32_t r = request_of(key);
      set(t_.next + r, request_of(get(t_.key + first)));
      set(t_.next_size + r, static_cast<int32_t>(end - first));
      set(t_.next_rank + r, static_cast<int32_t>(i - first));
      if (i == first) set(t_.first + r, static_cast<int32_t>(first));
    });
    side_.prefix(
        s_.batch + 1, [&](int i) { return i < s_.batch && is_first(i) ? 1 : 0; }, t_.firsts);
  }

  ASSAY_HOST_DEVICE static int64_t first_key(int32_t group) { return int64_t{group} << 42; }
  ASSAY_HOST_DEVICE static int32_t request_of(int64_t key) {
    return static_cast<int32_t>(key & (kMaxTreeBatch - 1));
  }
  /// Whether the key at a place is the first with its group and page, or none.
  ASSAY_HOST_DEVICE bool is_first(int i) const {
    if (i == 0 || i == s_.batch) return true;
    return get(t_.key + i) >> kSpotBits != get(t_.key + i - 1) >> kSpotBits;
  }
  /// The place of the first key that is not smaller.
  ASSAY_HOST_DEVICE int place_of(int64_t key) const {
    int low = 0, high = s_.batch;
    while (low < high) {
      const int mid = (low + high) / 2;
      if (get(t_.key + mid) >= key)
        high = mid;
      else
        low = mid + 1;
    }
    return low;
  }

  /// How often the newest keys of a group would be read without a node: once for each of its next
  /// pages, and once for each request without a next page.
  ASSAY_HOST_DEVICE int32_t copies_of(int32_t group) const {
    const int first = place_of(first_key(group)), end = place_of(first_key(group + 1));
    return get(t_.size + group) - (end - first) + get(t_.firsts + end) - get(t_.firsts + first);
  }

  /// Whether a request leads a group whose newest keys become a node.
  ASSAY_HOST_DEVICE bool leads_node(int r) const {
    return get(t_.group + r) == r && get(t_.copies + r) > 0;
  }

  /// Makes a node of the newest keys of each group, where that pays. Returns the number of nodes.
  ASSAY_HOST_DEVICE int32_t add_nodes(int level, int32_t before) {
    side_.each(s_.batch, [&](int r) {
      if (get(t_.group + r) != r) return;
      const PrefixNode node{
          r, 0, get(t_.size + r), copies_of(r), get(t_.begin + r), end_of_group(r)};
      set(t_.copies + r, is_worth_a_node(s_, node) ? node.copies : 0);
    });
    constexpr int kCount = 1 << 16; // nodes are counted above it, and their members below
    const int32_t added = side_.prefix(
        s_.batch, [&](int r) { return leads_node(r) ? kCount + get(t_.size + r) : 0; }, t_.value);
    side_.each(s_.batch, [&](int r) {
      if (!leads_node(r)) return;
      const int32_t sums = get(t_.value + r);
      set_node(before + sums / kCount, {r, level * s_.batch + sums % kCount, get(t_.size + r),
                                        get(t_.copies + r), get(t_.begin + r), end_of_group(r)});
    });
    side_.each(s_.batch, [&](int r) {
      const int32_t group = get(t_.group + r);
      if (group < 0 || get(t_.copies + group) == 0) return;
      const int32_t index = before + get(t_.value + group) / kCount, rank = get(t_.rank + r);
      side_.store(out_.members + get(&t_.nodes[index].first_member) + rank,
                  static_cast<int32_t>(r));
      int l = 0;
      while (get(t_.spot[l] + r) >= 0)
        ++l;
      set(t_.spot[l] + r, index << kSpotBits | rank);
      set(t_.begin + r, end_of_group(r));
    });
    return added / kCount;
  }

  /// Moves to the groups of the next round. Returns whether there are any.
  ASSAY_HOST_DEVICE bool descend() {
    side_.each_by_warp(s_.batch, [&](int r) {
      const int32_t first = get(t_.next + r);
      if (first < 0) return;
      const int32_t own = get(t_.pages + r), others = get(t_.pages + first);
      const int32_t both = own < others ? own : others;
      side_.set_by_one(t_.value + r,
                       first == r ? own
                                  : side_.shared_pages(in_, r, first, get(t_.page + r) + 1, both));
    });
    side_.each_by_warp(s_.batch, [&](int r) {
      if (get(t_.next + r) != r) return;
      side_.set_by_one(t_.copies + r, side_.least(get(t_.next_size + r), [&](int i) {
        return get(t_.value + request_of(get(t_.key + get(t_.first + r) + i)));
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
};

} // namespace assay
