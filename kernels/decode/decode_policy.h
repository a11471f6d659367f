// SPDX-License-Identifier: Apache-2.0
// Tuning of the decode kernels, as data.
#pragma once

#include <cstdint>

namespace assay {

struct DecodePolicy {
  int warps;      // per block; each runs its own key tiles
  int tile;       // keys per warp tile (16, 32 or 64)
  int stages;     // cp.async ring depth, tiles
  int row_tiles;  // query rows per warp: 8 * row_tiles
  int min_blocks; // per SM
};

/// Eight warps an SM:
///  - 4 warps, two blocks an SM: while one block starts or merges, the other one reads.
///  - 8 warps, one block an SM: half as many blocks, so half as many partials to merge.
/// head_dim 256 fills the shared memory of an SM with one block of 4 warps.
///
/// 64 KB in flight an SM, one SM's share of H200 bandwidth at 1.9 us of loaded latency: 128 KB cost
/// up to 4 % of the bandwidth (fp8 b64 8k: 0.925 of the floor, 0.951 with 64 KB). So a stage holds
/// 8 KB of K and V (16 KB with head_dim 256) and one is ahead. Less would be too little for the
/// look-ups, one tile ahead too: fp8 d64 b32 4k takes 38 us with tiles of 4 KB, 36 with 8 KB.
constexpr DecodePolicy decode_policy(int head_dim, int element_bytes, int row_tiles, int warps) {
  const int row_bytes = head_dim * element_bytes;
  return {.warps = warps,
          .tile = row_bytes <= 64                          ? 64
                  : row_bytes <= 128 || element_bytes == 1 ? 32
                                                           : 16,
          .stages = 2,
          .row_tiles = row_tiles,
          .min_blocks = warps == 8 || head_dim == 256 ? 1 : 2};
}

/// Row tiles of a block: the accumulators of 16 rows do not fit in registers with head_dim 256.
constexpr int decode_row_tiles(int rows, int head_dim) {
  return rows <= 8 || head_dim == 256 ? 1 : 2;
}
constexpr int row_tiles_per_group(int rows, int head_dim) {
  const int block_rows = 8 * decode_row_tiles(rows, head_dim);
  return (rows + block_rows - 1) / block_rows;
}

/// Shared memory of a block of such a DecodeCore: the rings, the merge buffers, with 8 warps the
/// queries (rows padded by 16 bytes, and a float each), and a flag.
constexpr int64_t decode_shared_bytes(int head_dim, int element_bytes, int row_tiles, int warps) {
  const DecodePolicy policy = decode_policy(head_dim, element_bytes, row_tiles, warps);
  const int64_t ring = int64_t{warps} * policy.stages * 2 * policy.tile * head_dim * element_bytes;
  const int64_t merge = int64_t{warps} * 8 * row_tiles * (head_dim + 2) * 4;
  const int64_t queries = warps == 8 ? 8 * row_tiles * (head_dim * 2 + 16 + 4) : 0;
  return ring + merge + queries + 16;
}

inline constexpr int kV1Warps = 4;

/// Softmax weights in two parts (AttentionTile): with 16-bit KV, whose output is no finer than one
/// rounded weight, where so few rows leave half of an MMA's columns idle. Fp8 KV has fp16 weights,
/// three bits finer than a bf16 output, and less time to spare (1.7 % of the error for 0.5 to 2 %
/// of it); blocks of 8 warps run where latency counts.
inline constexpr int kTwoPartRows = 4;
constexpr bool has_two_part_weights(int element_bytes, int warps, bool hooks) {
  return element_bytes == 2 && warps == 4 && !hooks;
}

/// A v1 block asks for at least this much shared memory: with 76,800 bytes (and 1,024 of the
/// system's) three of head_dim 64 fit an SM of 228 KB, and when a grid starts early its blocks
/// crowd on the SMs that the grid in front leaves first (d64 b32 4k on an H200: 64 us, started
/// early 71).
inline constexpr int64_t kV1SharedBytes = 76'800 + 16;

/// Warps of a paged_attention_v1 block that share a row: the fewest (1, 2 or 4) that fill at least
/// 90 % of the slots of the waves that the grid takes; with lengths that differ, always 4. A row of
/// its own saves a warp the merge, and the row three quarters of its fixed work (fp8 b256 256 on an
/// H200: 46 us with 4, 39 with 1; b64 8k: 248 with 4, 245 with 2).
constexpr int v1_row_warps(int64_t rows, bool even_lengths, int head_dim, int element_bytes,
                           int multiprocessors) {
  const int64_t blocks = decode_policy(head_dim, element_bytes, 1, kV1Warps).min_blocks;
  const int64_t wave = blocks * kV1Warps * multiprocessors;
  for (int warps = 1; even_lengths && wave > 0 && warps < kV1Warps; warps *= 2) {
    const int64_t waves = (rows * warps + wave - 1) / wave;
    if (10 * rows * warps >= 9 * waves * wave) return warps;
  }
  return kV1Warps;
}

/// Blocks of a paged_attention_v1 grid on a device that runs `slots` at once. A grid that starts
/// early takes the slots that the grid in front leaves first, and those of few blocks less than a
/// wave lie in one half of the chip: the other half has 6 % more to read, and ends 5 % later
/// (b128 2k on an H200: 8 of 264). So its waves are whole, and its row tiles dealt out evenly.
constexpr int64_t v1_blocks(int64_t row_tiles, int row_warps, int64_t slots, bool early_start) {
  const int64_t blocks = (row_tiles * row_warps + kV1Warps - 1) / kV1Warps;
  if (!early_start || slots == 0) return blocks;
  const int64_t waves = (blocks + slots - 1) / slots;
  return 10 * blocks >= 9 * waves * slots ? waves * slots : blocks;
}

/// Row tiles per block times 2^32, rounded up: block b has those from b * share >> 32 on, none of
/// `blocks` more than a whole share, and the last one ends with the last row tile (below 2^31).
constexpr uint64_t v1_tile_share(int64_t row_tiles, int64_t blocks) {
  return ((static_cast<uint64_t>(row_tiles) << 32) + blocks - 1) / blocks;
}

/// Warps per block of paged_attention_v2: 8 while the rows alone cannot fill the device, so that
/// most rows are split (b1 8k on an H200: 15.7 us with 8 warps, 19.8 with 4). With more rows a
/// block has several, and two blocks of 4 warps cover each other's merges (b32 ramp 2k of fp8: 28.6
/// and 24.5; uniform b24 2k: 30.4 and 31.9). A fixed plan promises bits that do not
/// depend on the rest of the batch: always 4. So has a device whose shared memory does not hold a
/// block of 8 (`eight_fit`).
constexpr int v2_warps(int64_t batch, int64_t units, int num_splits, int head_dim,
                       int multiprocessors, bool eight_fit) {
  const bool few_rows = batch * units <= multiprocessors;
  return num_splits == 0 && head_dim < 256 && few_rows && eight_fit ? 8 : 4;
}

} // namespace assay
