// SPDX-License-Identifier: Apache-2.0
#include "kernels/plan/tree_audit.h"

#include <algorithm>
#include <map>
#include <numeric>
#include <vector>

namespace assay {
namespace {

/// The pages that requests can share, found by a method of its own: level by level, depth first.
class SharedPages {
public:
  explicit SharedPages(const TreeInput &in) : in_(in), s_(in.shape), keys_(s_.batch) {
    std::vector<int32_t> all(static_cast<size_t>(s_.batch));
    std::iota(all.begin(), all.end(), 0);
    split(all, 0, 0);
  }

  /// Of each request, as far as kTreeLevels levels and kStartKeys let them be covered.
  const std::vector<int32_t> &keys() const { return keys_; }
  /// Whether the nodes, uncut, fit into workspace and plan.
  bool fits() const { return items_ <= kMaxTreeItems && states_ <= s_.max_rows; }

private:
  using Requests = std::vector<int32_t>;

  int32_t page(int32_t r, int32_t i) const { return in_.page_table[r * in_.page_table_stride + i]; }
  int32_t pages_of(int32_t r) const {
    return std::max(0, in_.seq_lens[r] - (s_.q_len - 1)) / s_.page_size;
  }

  void split(const Requests &requests, int32_t depth, int level) {
    if (level == kTreeLevels) return;
    std::map<int32_t, Requests> by_page;
    for (int32_t r : requests)
      if (pages_of(r) > depth) by_page[page(r, depth)].push_back(r);
    for (const auto &[_, group] : by_page)
      if (group.size() > 1) add(group, depth, level);
  }

  void add(const Requests &group, int32_t depth, int level) {
    const auto all_have = [&](int32_t i) {
      return std::ranges::all_of(
          group, [&](int32_t r) { return pages_of(r) > i && page(r, i) == page(group[0], i); });
    };
    while (all_have(depth))
      ++depth;
    const int32_t end = depth * s_.page_size / kStartKeys * kStartKeys;
    if (end > keys_[group[0]]) {
      const auto members = static_cast<int32_t>(group.size());
      const PrefixNode node{group[0], 0, members, members, keys_[group[0]], end};
      items_ += node_items(s_, node, 1);
      states_ += node_states(s_, node, 1);
      for (int32_t r : group)
        keys_[r] = end;
    }
    split(group, depth, level + 1);
  }

  const TreeInput &in_;
  const PrefixTreeShape &s_;
  std::vector<int32_t> keys_;
  int64_t items_ = 0, states_ = 0;
};

class TreeAudit {
public:
  TreeAudit(const TreeInput &in, const PrefixTree &tree, std::span<const int32_t> covered)
      : in_(in), s_(in.shape), tree_(tree), covered_(covered),
        written_(static_cast<size_t>(s_.max_rows)),
        keys_(static_cast<size_t>(s_.batch) * s_.kv_heads) {}

  std::string run() {
    if (std::string e = items(); !e.empty()) return e;
    for (int32_t r = 0; r < s_.batch; ++r) {
      std::string e = states(r);
      for (int32_t h = 0; h < s_.kv_heads && e.empty(); ++h)
        e = keys(r, h);
      if (!e.empty()) return e + " (request " + std::to_string(r) + ")";
    }
    return s_.splits > 0 ? forced() : "";
  }

private:
  struct Range {
    int32_t begin, end;
  };

  std::string items() {
    int32_t n = 0;
    for (; n <= kMaxTreeItems && tree_.items[n].kv_begin < tree_.items[n].kv_end; ++n)
      if (std::string e = item(tree_.items[n]); !e.empty())
        return e + " (item " + std::to_string(n) + ")";
    if (n > kMaxTreeItems) return "more items than a plan holds";
    for (int32_t i = n; i < n + s_.blocks; ++i)
      if (tree_.items[i].kv_begin != tree_.items[i].kv_end) return "no end behind the last item";
    return "";
  }

  std::string item(const TreeItem &item) {
    if (item.kv_head < 0 || item.kv_head >= s_.kv_heads) return "a head out of range";
    if (item.kv_begin < 0 || item.kv_begin % kStartKeys != 0) return "keys start within a tile";
    if (item.rows <= 0 || item.rows > s_.batch * s_.group || item.first_member < 0 ||
        item.first_member + item.rows / s_.group > s_.batch * kTreeLevels)
      return "rows out of range";
    if (item.first_row < 0 || item.first_row >= item.rows) return "no rows";
    const int32_t end = std::min(item.rows, item.first_row + kTreeRows);
    for (int32_t row = item.first_row; row < end; ++row)
      if (std::string e = item_row(item, row); !e.empty()) return e;
    return "";
  }

  std::string item_row(const TreeItem &item, int32_t row) {
    const int32_t r = tree_.members[item.first_member + row / s_.group];
    if (r < 0 || r >= s_.batch) return "request out of range";
    const int64_t state = int64_t{item.first_state} + row;
    if (state < 0 || state >= s_.max_rows) return "a state outside the workspace";
    if (written_[state]) return "a state written twice";
    written_[state] = true;
    if (!is_placed(r, item.kv_head, state - row % s_.group))
      return "a state where the merge does not look";
    if (row % s_.group != 0) return "";
    keys_[static_cast<size_t>(r) * s_.kv_heads + item.kv_head].push_back(
        {item.kv_begin, item.kv_end});
    return has_pages(r, item) ? "" : "keys that a request does not share";
  }

  bool is_placed(int32_t r, int32_t head, int64_t state) const {
    for (int l = 0; l < kTreeLevels; ++l) {
      const TreePlace &place = tree_.places[r * kTreeLevels + l];
      for (int32_t split = 0; split < place.splits; ++split)
        if (state_of(place, split, head) == state) return true;
    }
    return false;
  }
  int64_t state_of(const TreePlace &place, int32_t split, int32_t head) const {
    return place.first_state + (int64_t{split} * s_.kv_heads + head) * place.rows;
  }

  bool has_pages(int32_t r, const TreeItem &item) const {
    if (item.request < 0 || item.request >= s_.batch) return false;
    if (item.kv_end > in_.seq_lens[r] - (s_.q_len - 1)) return false;
    const auto row = [&](int32_t request) {
      return in_.page_table + request * in_.page_table_stride;
    };
    const int32_t first = item.kv_begin / s_.page_size, end = (item.kv_end - 1) / s_.page_size + 1;
    return std::equal(row(r) + first, row(r) + end, row(item.request) + first);
  }

  /// Of all heads and rows of a request, those that are merged are written.
  std::string states(int32_t r) const {
    for (int l = 0; l < kTreeLevels; ++l) {
      const TreePlace &place = tree_.places[r * kTreeLevels + l];
      if (place.splits < 0 || place.splits > kMaxNodeSplits) return "splits out of range";
      if (s_.splits > 0 && place.splits > s_.splits) return "more splits than were asked for";
      for (int32_t i = 0; i < place.splits * s_.kv_heads * s_.group; ++i) {
        const int64_t state =
            state_of(place, i / s_.group / s_.kv_heads, i / s_.group % s_.kv_heads) + i % s_.group;
        if (state < 0 || state >= s_.max_rows || !written_[state])
          return "a state that nobody writes";
      }
    }
    return "";
  }

  std::string keys(int32_t r, int32_t head) {
    auto &ranges = keys_[static_cast<size_t>(r) * s_.kv_heads + head];
    std::ranges::sort(ranges, {}, &Range::begin);
    int32_t next = 0;
    for (const Range &range : ranges) {
      if (range.begin != next) return "keys missing or computed twice";
      next = range.end;
    }
    return next == covered_[r] ? "" : "its own part does not begin where its nodes end";
  }

  std::string forced() const {
    const SharedPages shared(in_);
    for (int32_t r = 0; r < s_.batch; ++r)
      if (covered_[r] != (shared.fits() ? shared.keys()[r] : 0))
        return "covers " + std::to_string(covered_[r]) + " of " + std::to_string(shared.keys()[r]) +
               " shared keys" + (shared.fits() ? "" : ", which do not fit") + " (request " +
               std::to_string(r) + ")";
    return "";
  }

  const TreeInput &in_;
  const PrefixTreeShape &s_;
  const PrefixTree &tree_;
  std::span<const int32_t> covered_;
  std::vector<bool> written_;
  std::vector<std::vector<Range>> keys_; // [batch, kv_heads]
};

} // namespace

std::string tree_violation(const TreeInput &in, const PrefixTree &tree,
                           std::span<const int32_t> covered) {
  return TreeAudit(in, tree, covered).run();
}

} // namespace assay
