// SPDX-License-Identifier: Apache-2.0
#include "oracle/tile_order.h"

#include <stdexcept>

namespace assay::oracle {

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
