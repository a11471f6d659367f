// SPDX-License-Identifier: Apache-2.0
// Tuning of MmaCore, as data.
#pragma once

namespace assay {

struct MmaPolicy {
  int warps;     // per block; each owns 8 * row_tiles query rows
  int tile;      // keys per block tile, loaded by all warps together
  int stages;    // cp.async ring depth, tiles
  int row_tiles; // row tiles of 8 per warp
  constexpr int rows() const { return warps * 8 * row_tiles; }
};

/// A block has 64 rows: it reads a prefix of 8 requests with a GQA group of 8 heads once for all.
/// With head_dim 256 it has 32, because the accumulators of 16 rows a warp do not fit in registers.
constexpr MmaPolicy mma_policy(int head_dim) {
  return {.warps = 4, .tile = 32, .stages = 3, .row_tiles = head_dim == 256 ? 1 : 2};
}

} // namespace assay
