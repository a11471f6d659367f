// SPDX-License-Identifier: Apache-2.0
// Tuning of paged_attention_v1, as data.
#pragma once

#include "kernels/blocks/decode_policy.h"

namespace assay {

/// A v1 block asks for at least so much shared memory, so that no more than two fit on an SM. With
/// 76,800 bytes, and 1,024 of the system, three blocks of head_dim 64 would fit into the 228 KB of
/// an SM. The blocks of a grid that starts early would then crowd on the SMs that the grid in front
/// leaves first (d64 b32 4k on an H200: 71 us instead of 64).
inline constexpr int64_t kV1SharedBytes = 76'800 + 16;

/// How many warps of a paged_attention_v1 block share a head tile. Where lengths differ it is all
/// 4. Where they are alike it is the smallest of 1, 2 and 4 with which the waves of the grid are at
/// least 90 % full. A warp with a head tile of its own has nothing to merge, and saves three
/// quarters of the fixed work of a head tile (fp8 b256 256 on an H200: 46 us with 4, 39 with 1;
/// b64 8k: 248 with 4, 245 with 2).
constexpr int v1_tile_warps(int64_t head_tiles, bool even_lengths, int head_dim, int element_bytes,
                            int multiprocessors) {
  const int64_t blocks = decode_policy(head_dim, element_bytes, 1, kDecodeWarps).min_blocks;
  const int64_t wave = blocks * kDecodeWarps * multiprocessors;
  for (int warps = 1; even_lengths && wave > 0 && warps < kDecodeWarps; warps *= 2) {
    const int64_t waves = (head_tiles * warps + wave - 1) / wave;
    if (10 * head_tiles * warps >= 9 * waves * wave) return warps;
  }
  return kDecodeWarps;
}

/// Blocks of a paged_attention_v1 grid, on a device that runs `slots` of them at once. There are as
/// many as have work, but in an early start. A grid that starts early takes the slots that the grid
/// in front leaves first. If a few slots of its last wave stay empty, they all lie in one half of
/// the chip: the other half has 6 % more to read and ends 5 % later (b128 2k on an H200: 8 of 264
/// slots empty). So where little is missing the grid gets whole waves, and its blocks get equal
/// shares of the head tiles.
constexpr int64_t v1_blocks(int64_t head_tiles, int tile_warps, int64_t slots, bool enable_pdl) {
  const int64_t blocks = (head_tiles * tile_warps + kDecodeWarps - 1) / kDecodeWarps;
  if (!enable_pdl || slots == 0) return blocks;
  const int64_t waves = (blocks + slots - 1) / slots;
  return 10 * blocks >= 9 * waves * slots ? waves * slots : blocks;
}

/// Head tiles per block, as a fixed-point number with 32 fraction bits that is rounded up. Block b
/// has the head tiles from (b * share) >> 32 up to ((b + 1) * share) >> 32. No block has more than
/// a share rounded up, and the last one ends with the last head tile (head_tiles is below 2^31).
constexpr uint64_t v1_tile_share(int64_t head_tiles, int64_t blocks) {
  return ((static_cast<uint64_t>(head_tiles) << 32) + blocks - 1) / blocks;
}

} // namespace assay
