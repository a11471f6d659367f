// SPDX-License-Identifier: Apache-2.0
#include "properties/run/reached.h"

#include <algorithm>
#include <functional>
#include <optional>

#include <fmt/format.h>

namespace assay {
namespace {

int largest_of(const std::vector<int> &values) {
  return values.empty() ? 0 : *std::max_element(values.begin(), values.end());
}

/// A size of a draw: its name in reports and as a field of a case (null: it is a product of
/// fields), the least that a whole run asks each kernel for that takes it (0: none), and why draws
/// end where they do.
struct Size {
  const char *name, *field;
  int goal;
  const char *end;
};
constexpr const char *kOfCases = "no case holds more", *kOfModels = "no model has as many",
                     *kPast16Bits = "it is past what 16 bits count";
constexpr Size kPagedSizes[] = {
    {"batch", "batch", 64, kPast16Bits},
    {"num_kv_heads", "num_kv_heads", 8, kOfModels},
    {"num_qo_heads", nullptr, 0, kPast16Bits},
    {"group_size", "group_size", 33, kOfCases},
    {"keys of a row", "seq_lens", 4096, "it is past what 16 bits count; a GPU gets up to 2^20"},
    {"page_size", "page_size", 256, kOfCases},
    {"num_splits", "num_splits", 257, kOfCases},
    {"q_len", "q_len", 0, "assay.h allows no more"},
    {"window_left", "window_left", 0, "it hides keys of the longest rows that have one"}};
constexpr Size kCascadeSizes[] = {
    {"batch", "batch", 64, "segments by the thousand are past every block"},
    {"num_kv_heads", "num_kv_heads", 0, kOfModels},
    {"num_qo_heads", nullptr, 0, kOfModels},
    {"keys of a segment", "level.lens", 4096, "longer prefixes are paged cases"},
    {"page_size", "level.page_size", 256, kOfCases},
    {"num_splits", "num_splits", 257, kOfCases}};
constexpr Size kMergeSizes[] = {{"rows", "rows", 64, "rows are independent"},
                                {"heads", "heads", 0, kOfModels}};
constexpr Size kMergeStatesSizes[] = {{"rows", "rows", 0, "rows are independent"},
                                      {"heads", "heads", 0, kOfModels},
                                      {"states", "num_states", 257, kOfCases}};

std::span<const Size> sizes_of(Family family) {
  switch (family) {
  case Family::kPaged:
    return kPagedSizes;
  case Family::kCascade:
    return kCascadeSizes;
  case Family::kMergeState:
    return kMergeSizes;
  case Family::kMergeStates:
    return kMergeStatesSizes;
  }
  return {};
}

/// The smallest size above `size` that the kernel was asked about and refused.
std::optional<int> refused_above(const Envelope *envelope, const char *field, int size) {
  if (envelope == nullptr || field == nullptr) return std::nullopt;
  const auto at = envelope->fields.find(field);
  if (at == envelope->fields.end()) return std::nullopt;
  std::optional<int> out;
  for (int refused : at->second.refused)
    if (refused > size && (!out || refused < *out)) out = refused;
  return out;
}

bool takes(Family family, const Envelope *envelope, const Size &size) {
  if (envelope == nullptr) return true;
  for (const ShapeField &field : shape_fields(family))
    if (field.name == size.field) return envelope->takes(field, size.goal);
  return true;
}

} // namespace

std::string why_no_larger(Family family, const std::string &name, int reached,
                          const Envelope *envelope) {
  for (const Size &size : sizes_of(family)) {
    if (size.name != name) continue;
    const auto refused = refused_above(envelope, size.field, reached);
    if (!refused) return size.end;
    const std::string reason = envelope->reason_of(size.field, *refused);
    return fmt::format("the kernel refuses {}{}", *refused,
                       reason.empty() ? "" : fmt::format(" ({})", reason));
  }
  return "no case holds more";
}

std::vector<std::string> never_asked(Family family, const ReachedSizes &asked,
                                     const Envelope *envelope) {
  std::vector<std::string> out;
  const std::map<std::string, int> most = asked.most();
  for (const Size &size : sizes_of(family)) {
    const auto at = most.find(size.name);
    const int largest = at == most.end() ? 0 : at->second;
    if (size.goal == 0 || largest >= size.goal || !takes(family, envelope, size)) continue;
    out.push_back(fmt::format("it takes {} {} and was never asked with more than {}", size.name,
                              size.goal, largest));
  }
  return out;
}

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
  add("group_size", p.group_size);
  add("num_splits", p.num_splits);
  if (p.family == Family::kPaged) {
    add("keys of a row", largest_of(p.seq_lens));
    add("page_size", p.page_size);
    add("q_len", p.q_len);
    add("window_left", p.window_left);
    return;
  }
  int keys = 0, page_size = 0, segments = 0;
  for (const CascadeLevel &level : p.levels) {
    keys = std::max(keys, largest_of(level.lens));
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

std::map<std::string, int> ReachedSizes::most() const {
  std::map<std::string, int> out;
  for (const auto &[field, largest] : largest_)
    out[field] = largest.front();
  return out;
}

} // namespace assay
