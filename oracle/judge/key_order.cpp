// SPDX-License-Identifier: Apache-2.0
#include "oracle/judge/key_order.h"

#include <map>
#include <string>
#include <utility>

namespace assay::oracle {
namespace {

constexpr int64_t kMaxTiles = int64_t{1} << 28; // tiles of a call

[[noreturn]] void no_order(OrderError::Kind kind, const std::string &why) {
  throw OrderError(kind, "declared key order: the kernel does not give it: " + why);
}

/// A kernel counts what it says: ascending from 0.
void require_counts(const std::vector<int64_t> &first) {
  if (first[0] != 0)
    no_order(OrderError::Kind::kCounts, "its tiles begin at " + std::to_string(first[0]));
  for (size_t r = 1; r < first.size(); ++r)
    if (first[r] < first[r - 1])
      no_order(OrderError::Kind::kCounts, "it counts " + std::to_string(first[r] - first[r - 1]) +
                                              " tiles of request " + std::to_string(r - 1));
  if (first.back() > kMaxTiles)
    no_order(OrderError::Kind::kCounts, "it counts " + std::to_string(first.back()) + " tiles");
}

template <class Params>
std::shared_ptr<const KeyOrder> ask(const assay_kernel &kernel, Params params) {
  if (kernel.key_order == nullptr) return nullptr;
  params.target = kernel.target;
  auto order = std::make_shared<KeyOrder>();
  order->tiles.resize(1024);
  for (int attempt = 0; attempt < 2; ++attempt) {
    const auto capacity = static_cast<int64_t>(order->tiles.size());
    order->first.assign(static_cast<size_t>(params.batch) + 1, 0);
    if (kernel.key_order(&params, order->tiles.data(), capacity, order->first.data()) != ASSAY_OK) {
      const char *message = kernel.last_error != nullptr ? kernel.last_error() : nullptr;
      no_order(OrderError::Kind::kRefused, message != nullptr ? message : "it gives no reason");
    }
    require_counts(order->first);
    order->tiles.resize(static_cast<size_t>(order->first.back()));
    if (order->first.back() <= capacity) return order;
  }
  no_order(OrderError::Kind::kCounts, "it counts more tiles than it did before");
}

} // namespace

std::span<const assay_key_tile> KeyOrder::of(int request) const {
  const auto at = static_cast<size_t>(request);
  return std::span(tiles).subspan(static_cast<size_t>(first[at]),
                                  static_cast<size_t>(first[at + 1] - first[at]));
}

std::shared_ptr<const KeyOrder> ask_key_order(const assay_kernel &kernel, const void *params) {
  if (kernel.family == ASSAY_FAMILY_PAGED)
    return ask(kernel, *static_cast<const assay_paged_params *>(params));
  if (kernel.family == ASSAY_FAMILY_CASCADE)
    return ask(kernel, *static_cast<const assay_cascade_params *>(params));
  return nullptr;
}

TileOrder declared_order(const KeyOrder &declared, const AttentionRows &rows, int list) {
  std::map<std::pair<int, int>, int> splits;
  TileOrder order;
  for (const assay_key_tile &tile : declared.of(list)) {
    if (tile.level < 0 || tile.level >= rows.levels)
      throw OrderError(OrderError::Kind::kLevel, "a tile of level " + std::to_string(tile.level) +
                                                     " of " + std::to_string(rows.levels));
    const int next = static_cast<int>(splits.size());
    const int split = splits.try_emplace({tile.level, tile.split}, next).first->second;
    const int base = rows.level_position[static_cast<size_t>(list * rows.levels + tile.level)];
    order.push_back({split, tile.state, base + tile.begin, base + tile.end, tile.p_parts});
  }
  return order;
}

} // namespace assay::oracle
