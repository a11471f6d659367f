// SPDX-License-Identifier: Apache-2.0
#include "kernels/plan/tests/tree_audit.h"

#include <algorithm>
#include <map>
#include <numeric>
#include <vector>

namespace assay {
namespace {

/// The pages that requests can share. Its method is not the finder's: it goes depth first.
class SharedPages {
public:
  explicit SharedPages(const TreeInput &in) : in_(in), s_(in.shape), nodes_of_(s_.batch) {
    std::vector<int32_t> all(static_cast<size_t>(s_.batch));
    std::iota(all.begin(), all.end(), 0);
    split(all, 0, 0);
    choose_tiles();
  }

  /// Keys of a request that nodes can hold.
  int32_t keys(int32_t r) const {
    return nodes_of_[r].empty() ? 0 : nodes_[nodes_of_[r].back()].end;
  }
  /// Keys of a request that nodes of a plan hold: none where the nodes do not fit.
  int32_t planned_keys(int32_t r) const { return tiles_ > 0 ? keys(r) : 0; }
  /// Splits of the node that a request has on a level, 0 where it has none.
  int32_t splits(int32_t r, int level) const {
    if (tiles_ == 0 || level >= static_cast<int>(nodes_of_[r].size())) return 0;
    return node_splits(s_, nodes_[nodes_of_[r][level]], tiles_);
  }

private:
  using Requests = std::vector<int32_t>;

  int32_t page(int32_t r, int32_t i) const {
    return in_.list_of(r, [](const int32_t *p) { return *p; })[i];
  }
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
    const int32_t begin = keys(group[0]), end = depth * s_.page_size / kStartKeys * kStartKeys;
    if (end > begin) {
      const auto members = static_cast<int32_t>(group.size());
      for (int32_t r : group)
        nodes_of_[r].push_back(nodes_.size());
      nodes_.push_back({group[0], 0, members, members, begin, end});
    }
    split(group, depth, level + 1);
  }

  /// Chooses the tiles of an item: those of a part where the longest node is cut into as many parts
  /// as were asked for, or else those of the whole node.
  void choose_tiles() {
    int32_t longest = 0;
    for (const PrefixNode &node : nodes_)
      longest = std::max(longest, tiles_of(node.end - node.begin, s_.tile));
    if (longest == 0) return;
    const int32_t parts = std::min(s_.splits, longest);
    for (const int32_t tiles : {(longest + parts - 1) / parts, longest})
      if (fits(tiles)) {
        tiles_ = tiles;
        return;
      }
  }

  bool fits(int32_t tiles) const {
    int64_t items = 0, states = 0;
    for (const PrefixNode &node : nodes_) {
      const int32_t splits = node_splits(s_, node, tiles);
      items += node_items(s_, node, splits);
      states += node_states(s_, node, splits);
    }
    return items <= kMaxTreeItems && states <= s_.max_rows;
  }

  const TreeInput &in_;
  const PrefixTreeShape &s_;
  std::vector<PrefixNode> nodes_;
  std::vector<std::vector<size_t>> nodes_of_; // [batch], from the first level on
  int32_t tiles_ = 0;                         // tiles of an item; 0: no nodes
};

class TreeAudit {
public:
  TreeAudit(const TreeInput &in, const PrefixTree &tree, std::span<const int32_t> covered)
      : in_(in), s_(in.shape), tree_(tree), covered_(covered),
        written_(static_cast<size_t>(s_.max_rows)),
        keys_(static_cast<size_t>(s_.batch) * s_.kv_heads * s_.query_rows) {}

  std::string run() {
    for (int32_t r = 0; r < s_.batch; ++r)
      if (std::string e = coords(r); !e.empty()) return e + of_request(r);
    if (std::string e = items(); !e.empty()) return e;
    for (int32_t r = 0; r < s_.batch; ++r) {
      std::string e = merged(r);
      for (int32_t i = 0; i < s_.kv_heads * s_.query_rows && e.empty(); ++i)
        e = keys(r, i);
      if (!e.empty()) return e + of_request(r);
    }
    return s_.splits > 0 ? forced() : "";
  }

private:
  struct Range {
    int32_t begin, end;
  };

  static std::string of_request(int32_t r) { return " (request " + std::to_string(r) + ")"; }
  const TreeCoord &coord(int32_t r, int level) const {
    return tree_.coords[r * kTreeLevels + level];
  }
  static int64_t state_of(const TreeCoord &coord, int64_t part) {
    return coord.first_state + part * coord.rows;
  }

  /// Checks the coords that the merge looks at: those in front of the first empty one.
  std::string coords(int32_t r) const {
    for (int l = 0; l < kTreeLevels && coord(r, l).splits != 0; ++l) {
      const TreeCoord &p = coord(r, l);
      if (p.splits < 0 || p.splits > kMaxNodeSplits) return "splits out of range";
      if (p.rows < s_.query_rows || p.first_state < 0) return "coordinates out of range";
      if (state_of(p, int64_t{p.splits} * s_.kv_heads - 1) + s_.query_rows > s_.max_rows)
        return "coordinates outside the workspace";
    }
    return "";
  }

  std::string items() {
    int32_t n = 0;
    while (n <= kMaxTreeItems && tree_.items[n].kv_begin < tree_.items[n].kv_end)
      ++n;
    if (n > kMaxTreeItems) return "more items than a plan holds";
    for (int32_t i = 0; i < n; ++i)
      if (std::string e = item(tree_.items[i]); !e.empty())
        return e + " (item " + std::to_string(i) + ")";
    for (int32_t i = n; i < n + s_.blocks; ++i)
      if (tree_.items[i].kv_begin != tree_.items[i].kv_end) return "no end behind the last item";
    return "";
  }

  std::string item(const TreeItem &item) {
    if (item.kv_head < 0 || item.kv_head >= s_.kv_heads) return "a head out of range";
    if (item.kv_begin < 0 || item.kv_begin % kStartKeys != 0) return "keys start within a tile";
    if (item.rows <= 0 || item.rows % s_.query_rows != 0 || item.first_member < 0 ||
        int64_t{item.first_member} + item.rows / s_.query_rows > int64_t{s_.batch} * kTreeLevels)
      return "rows out of range";
    if (item.first_row < 0 || item.first_row >= item.rows) return "no rows";
    if (!has_keys(item.request, item)) return "keys that its request does not have";
    const int32_t end =
        static_cast<int32_t>(std::min(int64_t{item.rows}, int64_t{item.first_row} + kTreeRows));
    for (int32_t row = item.first_row; row < end; ++row)
      if (std::string e = item_row(item, row); !e.empty()) return e;
    return "";
  }

  std::string item_row(const TreeItem &item, int32_t row) {
    const int32_t r = tree_.members[item.first_member + row / s_.query_rows],
                  of_group = row % s_.query_rows;
    if (row == item.first_row || of_group == 0)
      if (!has_keys(r, item) || !has_pages(r, item)) return "keys that a request does not share";
    const int64_t state = int64_t{item.first_state} + row;
    if (state < 0 || state >= s_.max_rows) return "a state outside the workspace";
    if (written_[state]) return "a state written twice";
    written_[state] = true;
    if (!is_merged(r, item.kv_head, state - of_group))
      return "a state where the merge does not look";
    keys_[(static_cast<size_t>(r) * s_.kv_heads + item.kv_head) * s_.query_rows + of_group]
        .push_back({item.kv_begin, item.kv_end});
    return "";
  }

  bool is_merged(int32_t r, int32_t head, int64_t state) const {
    for (int l = 0; l < kTreeLevels && coord(r, l).splits != 0; ++l)
      for (int32_t split = 0; split < coord(r, l).splits; ++split)
        if (state_of(coord(r, l), int64_t{split} * s_.kv_heads + head) == state) return true;
    return false;
  }

  /// Whether a request has the keys of an item, and its first query token sees them.
  bool has_keys(int32_t r, const TreeItem &item) const {
    return r >= 0 && r < s_.batch && item.kv_end <= in_.seq_lens[r] - (s_.q_len - 1);
  }
  bool has_pages(int32_t r, const TreeItem &item) const {
    const auto row = [&](int32_t request) {
      return in_.list_of(request, [](const int32_t *p) { return *p; });
    };
    const int32_t first = item.kv_begin / s_.page_size, end = (item.kv_end - 1) / s_.page_size + 1;
    return std::equal(row(r) + first, row(r) + end, row(item.request) + first);
  }

  /// Every state that is merged for a request is written, and merged once.
  std::string merged(int32_t r) {
    for (int l = 0; l < kTreeLevels && coord(r, l).splits != 0; ++l)
      for (int32_t i = 0; i < coord(r, l).splits * s_.kv_heads * s_.query_rows; ++i) {
        const int64_t state = state_of(coord(r, l), i / s_.query_rows) + i % s_.query_rows;
        if (!written_[state]) return "a state that nobody writes, or that is merged twice";
        written_[state] = false;
      }
    return "";
  }

  /// Checks the keys that a row of a kv head has met.
  std::string keys(int32_t r, int32_t row) {
    auto &ranges = keys_[static_cast<size_t>(r) * s_.kv_heads * s_.query_rows + row];
    std::ranges::sort(ranges, {}, &Range::begin);
    int32_t next = 0;
    for (const Range &range : ranges) {
      if (range.begin != next) return "keys missing or computed twice";
      next = range.end;
    }
    if (next != covered_[r]) return "its own part does not begin where its nodes end";
    return next % kStartKeys == 0 ? "" : "its own part starts within a tile";
  }

  std::string forced() const {
    const SharedPages shared(in_);
    for (int32_t r = 0; r < s_.batch; ++r) {
      if (covered_[r] != shared.planned_keys(r))
        return "covers " + std::to_string(covered_[r]) + " keys, " +
               std::to_string(shared.keys(r)) + " can be shared and " +
               std::to_string(shared.planned_keys(r)) + " fit" + of_request(r);
      for (int l = 0; l < kTreeLevels; ++l)
        if (coord(r, l).splits != shared.splits(r, l))
          return std::to_string(coord(r, l).splits) + " splits at level " + std::to_string(l) +
                 ", expected " + std::to_string(shared.splits(r, l)) + of_request(r);
    }
    return "";
  }

  const TreeInput &in_;
  const PrefixTreeShape &s_;
  const PrefixTree &tree_;
  std::span<const int32_t> covered_;
  std::vector<bool> written_;            // and not merged yet
  std::vector<std::vector<Range>> keys_; // [batch, kv_heads, query_rows]
};

} // namespace

std::string tree_violation(const TreeInput &in, const PrefixTree &tree,
                           std::span<const int32_t> covered) {
  return TreeAudit(in, tree, covered).run();
}

} // namespace assay
