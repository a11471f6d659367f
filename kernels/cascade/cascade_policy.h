// SPDX-License-Identifier: Apache-2.0
// Tuning of cascade attention, as data.
#pragma once

namespace assay {

struct CascadePolicy {
  int warps;     // per block; each owns 8 * row_tiles query rows
  int tile;      // keys per block tile, loaded by all warps together
  int stages;    // cp.async ring depth, tiles
  int row_tiles; // row tiles of 8 per warp
  constexpr int rows() const { return warps * 8 * row_tiles; }
};

/// 64 rows a block: a prefix shared by 8 requests with a group of 8 heads is read once.
constexpr CascadePolicy cascade_policy() {
  return {.warps = 4, .tile = 32, .stages = 3, .row_tiles = 2};
}

} // namespace assay
