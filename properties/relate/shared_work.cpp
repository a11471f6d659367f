// SPDX-License-Identifier: Apache-2.0
#include "properties/relate/shared_work.h"

#include <algorithm>
#include <map>
#include <numeric>

#include <fmt/format.h>

#include "properties/call/materialise.h"

namespace assay {
namespace {

struct Range {
  int begin, end;
  friend auto operator<=>(const Range &, const Range &) = default;
};
using Ranges =
    std::vector<std::vector<Range>>; // splits of each request, in the order of their keys

Ranges ranges_of(const Tensors &t, const oracle::KeyOrder &order) {
  Ranges out(t.problem.batch);
  for (int r = 0; r < t.problem.batch; ++r) {
    if (t.problem.seq_lens[r] == 0) continue;
    std::map<int, Range> splits;
    for (const assay_key_tile &tile : order.of(r)) {
      Range &range = splits.try_emplace(tile.split, Range{tile.begin, tile.end}).first->second;
      range = {std::min(range.begin, tile.begin), std::max(range.end, tile.end)};
    }
    for (const auto &[split, range] : splits)
      out[r].push_back(range);
    std::sort(out[r].begin(), out[r].end());
  }
  return out;
}

/// Finds what requests begin with, and adds it to `out`.
class Search {
public:
  Search(const CacheView &cache, const Ranges &ranges, std::vector<SharedKeys> &out)
      : cache_(cache), ranges_(ranges), out_(out) {}

  /// Groups requests that are alike in front of split `at`.
  void group(const std::vector<int> &requests, size_t at, SharedKeys node) {
    std::map<std::pair<Range, std::vector<int>>, std::vector<int>> next;
    for (int r : requests)
      if (at < ranges_[r].size()) next[{ranges_[r][at], pages_of(r, ranges_[r][at])}].push_back(r);
    const bool goes_on = next.size() == 1 && next.begin()->second.size() == requests.size();
    if (!goes_on) add(std::move(node));
    for (const auto &[key, members] : next) {
      const Range range = key.first;
      if (members.size() < 2) continue;
      SharedKeys longer = goes_on ? std::move(node) : SharedKeys{};
      if (longer.splits.empty()) longer.begin = range.begin;
      longer.requests = members;
      longer.end = range.end;
      longer.splits.push_back(range.end - range.begin);
      group(members, at + 1, std::move(longer));
    }
  }

private:
  std::vector<int> pages_of(int request, Range range) const {
    const std::vector<int> &pages = cache_.physical[request];
    const auto page = [&](int key) { // a wrong order may name keys that there are not
      return std::clamp(key / cache_.page_size, 0, static_cast<int>(pages.size()));
    };
    const int first = page(range.begin);
    const int end = std::max(first, page(range.end + cache_.page_size - 1));
    return {pages.begin() + first, pages.begin() + end};
  }
  void add(SharedKeys node) {
    if (!node.splits.empty()) out_.push_back(std::move(node));
  }

  const CacheView &cache_;
  const Ranges &ranges_;
  std::vector<SharedKeys> &out_;
};

} // namespace

std::vector<SharedKeys> shared_work(const Tensors &t, Sut &sut) {
  std::vector<SharedKeys> out;
  if (t.problem.family != Family::kPaged || t.problem.batch < 2) return out;
  const auto order = sut.key_order(t);
  if (!order) return out;
  const Tensors apart = materialise(t.problem, {.unshare = true});
  const Ranges ranges = ranges_of(t, *order);
  if (ranges == ranges_of(apart, *sut.key_order(apart))) return out;
  std::vector<int> all(t.problem.batch);
  std::iota(all.begin(), all.end(), 0);
  Search(t.caches[0], ranges, out).group(all, 0, {});
  return out;
}

std::string explain_shared_work(const Tensors &t, Sut &sut) {
  std::vector<SharedKeys> shared;
  try {
    shared = shared_work(t, sut);
  } catch (const oracle::OrderError &) { // a finding of its own
  }
  if (shared.empty()) return "";
  const Problem &p = t.problem;
  std::vector<int> own = p.seq_lens;
  const int64_t flat = std::accumulate(own.begin(), own.end(), int64_t{0});
  int64_t once = 0, states = 0;
  std::string text = "computed once, as the order of keys says:\n";
  for (const SharedKeys &s : shared) {
    const auto members = static_cast<int>(s.requests.size());
    int rows = 0;
    for (int r : s.requests)
      rows += query_tokens(p, r) * p.group_size;
    text += fmt::format(
        "  keys {:>5} .. {:<5} of {} requests ({}), {} query rows a kv head, splits "
        "of {} keys\n",
        s.begin, s.end, members, fmt::join(s.requests, " "), rows, fmt::join(s.splits, " "));
    once += s.end - s.begin;
    states += int64_t{rows} * p.num_kv_heads * static_cast<int64_t>(s.splits.size());
    for (int r : s.requests)
      own[r] -= s.end - s.begin;
  }
  once += std::accumulate(own.begin(), own.end(), int64_t{0});
  return text + fmt::format("  of their own the requests have {} keys\n"
                            "  {} keys are read in place of {}, for {} partial states\n",
                            fmt::join(own, " "), once, flat, states);
}

} // namespace assay
