// SPDX-License-Identifier: Apache-2.0
// Tuning of the decode kernels, as data.
#pragma once

namespace assay {

struct DecodePolicy {
  int warps;      // per block; each runs its own key tiles
  int tile;       // keys per warp tile (16 or 32)
  int stages;     // cp.async ring depth, tiles
  int row_tiles;  // query rows per warp: 8 * row_tiles
  int min_blocks; // per SM
};

/// 4 warps x 3 stages x 16 keys x 512 B (d 128) = 96 KB a block, two blocks an SM: 128 KB in
/// flight, above the 64 KB that one SM's share of H200 bandwidth needs at 0.9 us of loaded latency.
constexpr DecodePolicy decode_policy(int head_dim, int row_tiles) {
  return {.warps = 4,
          .tile = 16,
          .stages = head_dim == 64 ? 4 : 3,
          .row_tiles = row_tiles,
          .min_blocks = 2};
}

} // namespace assay
