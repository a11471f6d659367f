// SPDX-License-Identifier: Apache-2.0
#include "properties/run/reached.h"

#include <algorithm>
#include <functional>

namespace assay {
namespace {

int most(const std::vector<int> &values) {
  return values.empty() ? 0 : *std::max_element(values.begin(), values.end());
}

} // namespace

void ReachedSizes::add(const std::string &field, int size) {
  std::vector<int> &largest = largest_[field];
  largest.insert(std::upper_bound(largest.begin(), largest.end(), size, std::greater<>()), size);
  if (largest.size() > kDraws) largest.pop_back();
}

void ReachedSizes::add(const Problem &p) {
  add("head_dim", p.head_dim);
  if (is_merge(p)) {
    add("rows", p.batch);
    add("heads", p.num_kv_heads);
    if (p.family == Family::kMergeStates) add("states", p.num_states);
    return;
  }
  add("batch", p.batch);
  add("num_kv_heads", p.num_kv_heads);
  add("num_qo_heads", p.num_qo_heads());
  add("num_splits", p.num_splits);
  if (p.family == Family::kPaged) {
    add("keys of a row", most(p.seq_lens));
    add("page_size", p.page_size);
    add("q_len", p.q_len);
    add("window", p.window);
    return;
  }
  int keys = 0, page_size = 0, segments = 0;
  for (const CascadeLevel &level : p.levels) {
    keys = std::max(keys, most(level.lens));
    page_size = std::max(page_size, level.page_size);
    segments = std::max(segments, static_cast<int>(level.lens.size()));
  }
  add("keys of a segment", keys);
  add("segments of a level", segments);
  add("page_size", page_size);
}

void ReachedSizes::merge(const ReachedSizes &other) {
  for (const auto &[field, largest] : other.largest_)
    for (int size : largest)
      add(field, size);
}

std::map<std::string, int> ReachedSizes::sizes() const {
  std::map<std::string, int> out;
  for (const auto &[field, largest] : largest_)
    if (largest.size() == kDraws) out[field] = largest.back();
  return out;
}

} // namespace assay
