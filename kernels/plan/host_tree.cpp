// SPDX-License-Identifier: Apache-2.0
#include "kernels/plan/host_tree.h"

#include <algorithm>
#include <cstring>
#include <memory>

namespace assay {
namespace {

struct HostSide {
  template <class T>
  T get(const T *p) const {
    return *p;
  }
  template <class T>
  void set(T *p, T value) const {
    *p = value;
  }
  template <class T>
  void set_by_one(T *p, T value) const {
    *p = value;
  }
  int32_t load(const int32_t *p) const { return *p; }
  template <class T>
  void store(T *p, T value) const {
    *p = value;
  }
  template <class T>
  void store_record(T *p, const T &value) const {
    *p = value;
  }
  template <class F>
  void each(int n, F f) const {
    for (int i = 0; i < n; ++i)
      f(i);
  }
  template <class F>
  void each_by_warp(int n, F f) const {
    each(n, f);
  }
  template <class F>
  auto sum(int n, F f) const {
    decltype(f(0)) total{};
    for (int i = 0; i < n; ++i)
      total += f(i);
    return total;
  }
  template <class F>
  auto least(int n, F f) const {
    decltype(f(0)) found = -1;
    for (int i = 0; i < n; ++i)
      if (const auto v = f(i); v >= 0 && (found < 0 || v < found)) found = v;
    return found;
  }
  void sort(int64_t *keys, int n) const { std::sort(keys, keys + n); }
  template <class F>
  int32_t prefix(int n, F f, int32_t *sums) const {
    int32_t total = 0;
    for (int i = 0; i < n; ++i) {
      const int32_t own = f(i); // which may read sums[i]
      sums[i] = total;
      total += own;
    }
    return total;
  }
  int32_t shared_pages(const TreeInput &in, int32_t a, int32_t b, int32_t first,
                       int32_t count) const {
    const auto load = [](const int32_t *p) { return *p; };
    const int32_t *x = in.list_of(a, load), *y = in.list_of(b, load);
    constexpr int32_t kPages = 64; // that are compared at once
    while (first + kPages <= count && std::memcmp(x + first, y + first, kPages * sizeof *x) == 0)
      first += kPages;
    while (first < count && x[first] == y[first])
      ++first;
    return first;
  }
};

} // namespace

HostTree::HostTree(const TreeInput &in)
    : shape_(in.shape), items_(kMaxTreeItems + in.shape.blocks),
      coords_(static_cast<size_t>(in.shape.batch) * kTreeLevels),
      members_(static_cast<size_t>(in.shape.batch) * kTreeLevels), covered_(in.shape.batch) {
  const TreeOutput out{items_.data(), coords_.data(), members_.data(), covered_.data()};
  const auto scratch = std::make_unique<TreeScratch>();
  TreeFinder<HostSide>(in, out, *scratch, HostSide{}).run();
}

PrefixTree HostTree::view() const { return {items_.data(), coords_.data(), members_.data()}; }

std::vector<KeyRange> HostTree::ranges_of(int32_t request) const {
  std::vector<KeyRange> out;
  for (int l = 0; l < kTreeLevels; ++l) {
    const TreeCoord &coord = coords_[request * kTreeLevels + l];
    for (int32_t split = 0; split < coord.splits; ++split) {
      const int32_t state = coord.first_state + split * shape_.kv_heads * coord.rows;
      for (int32_t i = 0; i < num_items(); ++i) {
        const TreeItem &item = items_[i];
        const int32_t row = state - item.first_state;
        if (row >= item.first_row && row < std::min(item.rows, item.first_row + kTreeRows))
          out.push_back({item.kv_begin, item.kv_end});
      }
    }
  }
  return out;
}

int32_t HostTree::num_items() const {
  int32_t n = 0;
  while (items_[n].kv_begin < items_[n].kv_end)
    ++n;
  return n;
}

} // namespace assay
