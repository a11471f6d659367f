// SPDX-License-Identifier: Apache-2.0
#include "oracle/exact/tile_order.h"

#include <algorithm>
#include <stdexcept>

namespace assay::oracle {

TileOrder clip_order(const TileOrder &order, int begin, int end) {
  TileOrder clipped;
  for (KeyTile tile : order) {
    const int first = std::max(tile.begin, begin), last = std::min(tile.end, end);
    if (first >= last) continue;
    tile.lead += first - tile.begin;
    tile.begin = first - begin;
    tile.end = last - begin;
    clipped.push_back(tile);
  }
  return clipped;
}

void append_sink(TileOrder &order, int key) {
  int split = 0;
  for (const KeyTile &tile : order)
    split = std::max(split, tile.split + 1);
  order.push_back({split, 0, key, key + 1});
}

void require_partition(const TileOrder &order, size_t keys) {
  std::vector<unsigned char> seen(keys, 0);
  size_t covered = 0;
  for (const KeyTile &tile : order) {
    if (tile.begin < 0 || tile.end < tile.begin || static_cast<size_t>(tile.end) > keys) {
      throw std::invalid_argument("oracle: tile order leaves the row");
    }
    for (int j = tile.begin; j < tile.end; ++j) {
      if (seen[static_cast<size_t>(j)]++) {
        throw std::invalid_argument("oracle: tile order visits a key twice");
      }
      ++covered;
    }
  }
  if (covered != keys) throw std::invalid_argument("oracle: tile order misses a key");
}

} // namespace assay::oracle
