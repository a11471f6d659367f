// SPDX-License-Identifier: Apache-2.0
#include "oracle/exact/tile_order.h"

#include <algorithm>
#include <string>

namespace assay::oracle {

const char *name_of(OrderError::Kind kind) {
  switch (kind) {
  case OrderError::Kind::kRefused:
    return "not given";
  case OrderError::Kind::kCounts:
    return "counts";
  case OrderError::Kind::kLevel:
    return "level";
  case OrderError::Kind::kTooManySplits:
    return "more splits than declared";
  case OrderError::Kind::kOutside:
    return "keys outside the row";
  case OrderError::Kind::kTwice:
    return "a key twice";
  case OrderError::Kind::kMissed:
    return "a key missed";
  case OrderError::Kind::kEnded:
    return "the process ended";
  }
  return "";
}

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
  std::vector<bool> seen(keys, false);
  for (const KeyTile &tile : order) {
    if (tile.begin < 0 || tile.end < tile.begin || static_cast<size_t>(tile.end) > keys)
      throw OrderError(OrderError::Kind::kOutside, "a tile of keys " + std::to_string(tile.begin) +
                                                       " to " + std::to_string(tile.end) + " of " +
                                                       std::to_string(keys));
    for (auto j = static_cast<size_t>(tile.begin); j < static_cast<size_t>(tile.end); ++j) {
      if (seen[j])
        throw OrderError(OrderError::Kind::kTwice,
                         "key " + std::to_string(j) + " is visited twice");
      seen[j] = true;
    }
  }
  const auto missed = std::find(seen.begin(), seen.end(), false);
  if (missed != seen.end())
    throw OrderError(OrderError::Kind::kMissed, "key " + std::to_string(missed - seen.begin()) +
                                                    " of " + std::to_string(keys) +
                                                    " is not visited");
}

} // namespace assay::oracle
