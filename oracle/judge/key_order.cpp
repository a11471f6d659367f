// SPDX-License-Identifier: Apache-2.0
#include "oracle/judge/key_order.h"

#include <map>
#include <string>
#include <utility>

#include "oracle/exact/row_input.h"

namespace assay::oracle {
namespace {

[[noreturn]] void no_order(const std::string &why) {
  throw OrderError("the kernel declares one and does not give it: " + why);
}

constexpr int32_t kMostTiles = 1 << 24; // of one row

KeyTiles ask(const assay_kernel &kernel, const void *params, int request, int qo_head) {
  KeyTiles tiles(256);
  for (int attempt = 0; attempt < 2; ++attempt) {
    const auto capacity = static_cast<int32_t>(tiles.size());
    int32_t count = 0;
    if (kernel.key_order(params, request, qo_head, tiles.data(), capacity, &count) != ASSAY_OK) {
      const char *message = kernel.last_error != nullptr ? kernel.last_error() : nullptr;
      no_order(message != nullptr ? message : "it gives no reason");
    }
    if (count < 0 || count > kMostTiles) no_order("it counts " + std::to_string(count) + " tiles");
    tiles.resize(static_cast<size_t>(count));
    if (count <= capacity) return tiles;
  }
  no_order("it counts more tiles than it did before");
}

template <class Params>
AskKeyTiles asking(const assay_kernel &kernel, const Params &params) {
  if (kernel.key_order == nullptr) return nullptr;
  return [&kernel, &params](int request, int qo_head) {
    Params asked = params;
    asked.target = kernel.target;
    return ask(kernel, &asked, request, qo_head);
  };
}

/// `first_key`: of each level, among all keys of the request.
TileOrder numbered(const KeyTiles &tiles, const std::vector<int> &first_key) {
  std::map<std::pair<int, int>, int> splits;
  TileOrder order;
  for (const assay_key_tile &tile : tiles) {
    if (tile.level < 0 || static_cast<size_t>(tile.level) >= first_key.size())
      throw OrderError("a tile of level " + std::to_string(tile.level) + " of " +
                       std::to_string(first_key.size()));
    const int next = static_cast<int>(splits.size());
    const int split = splits.try_emplace({tile.level, tile.split}, next).first->second;
    const int base = first_key[static_cast<size_t>(tile.level)];
    order.push_back({split, tile.state, base + tile.begin, base + tile.end, tile.p_parts});
  }
  return order;
}

} // namespace

AskKeyTiles ask_kernel(const assay_kernel &kernel, const assay_paged_params &params) {
  return asking(kernel, params);
}
AskKeyTiles ask_kernel(const assay_kernel &kernel, const assay_cascade_params &params) {
  return asking(kernel, params);
}

TileOrder declared_order(const AskKeyTiles &ask, const assay_paged_params &, int request,
                         int qo_head) {
  return numbered(ask(request, qo_head), {0});
}

TileOrder declared_order(const AskKeyTiles &ask, const assay_cascade_params &params, int request,
                         int qo_head) {
  std::vector<int> first_key;
  int keys = 0;
  for (int level = 0; level < params.num_levels; ++level) {
    first_key.push_back(keys);
    keys += level_length(params, level, request);
  }
  return numbered(ask(request, qo_head), first_key);
}

} // namespace assay::oracle
