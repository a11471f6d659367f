// SPDX-License-Identifier: Apache-2.0
// Tuning of DecodeCore and of what runs it, as data.
#pragma once

#include <cstdint>

namespace assay {

struct DecodePolicy {
  int warps;      // per block; each runs its own key tiles
  int tile;       // keys per warp tile (16, 32 or 64)
  int stages;     // cp.async ring depth, tiles
  int row_tiles;  // number of tiles of 8 query rows
  int min_blocks; // per SM
};

/// An SM runs eight warps, in one of two forms:
///  - two blocks of 4 warps: while one block starts or merges, the other one reads;
///  - one block of 8 warps: there are half as many blocks, and half as many partials to merge.
/// With head_dim 256 one block of 4 warps fills the shared memory of an SM.
///
/// An SM should have 64 KB of loads in flight: its part of the bandwidth of an H200, times 1.9 us
/// of latency under load. With 128 KB in flight it read up to 4 % slower (fp8 b64 8k: 0.925 of the
/// floor against 0.951). Hence a warp has two stages of 8 KB of K and V (16 KB with head_dim 256),
/// one of which is in flight. The page-table look-ups are one tile ahead as well, and a smaller
/// stage leaves too little time for them: fp8 d64 b32 4k takes 38 us with stages of 4 KB and 36 us
/// with 8 KB.
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

/// Row tiles of a head tile, for a kv head with so many query rows. With head_dim 256 there is one:
/// the accumulators of 16 rows do not fit in registers.
constexpr int decode_row_tiles(int query_rows, int head_dim) {
  return query_rows <= 8 || head_dim == 256 ? 1 : 2;
}
/// Head tiles, each of one block, that hold all query rows of a kv head.
constexpr int tiles_per_kv_head(int query_rows, int head_dim) {
  const int tile_rows = 8 * decode_row_tiles(query_rows, head_dim);
  return (query_rows + tile_rows - 1) / tile_rows;
}

/// Shared memory of a block: the rings of all warps, the buffers in which their states are merged,
/// and a flag. With 8 warps it has the queries, too: rows padded by 16 bytes, and a float for each.
constexpr int64_t decode_shared_bytes(int head_dim, int element_bytes, int row_tiles, int warps) {
  const DecodePolicy policy = decode_policy(head_dim, element_bytes, row_tiles, warps);
  const int64_t ring = int64_t{warps} * policy.stages * 2 * policy.tile * head_dim * element_bytes;
  const int64_t merge = int64_t{warps} * 8 * row_tiles * (head_dim + 2) * 4;
  const int64_t queries = warps == 8 ? 8 * row_tiles * (head_dim * 2 + 16 + 4) : 0;
  return ring + merge + queries + 16;
}

/// Warps of a block that every kernel has in its smallest form.
inline constexpr int kDecodeWarps = 4;

/// To round a softmax weight to 16 bits costs as much accuracy as to round the output. With up to
/// so many query rows half of the columns of an MMA are idle: they multiply what rounding took from
/// the weights (AttentionTile, kTwoParts). With an fp8 cache they do not: its weights are fp16,
/// three bits finer than a bf16 output, and 1.7 % of the error would cost 0.5 to 2 % of the time.
/// In blocks of 8 warps they do not either, since those run where latency counts.
inline constexpr int kTwoPartRows = 4;
constexpr bool has_two_part_weights(int element_bytes, int warps, bool features) {
  return element_bytes == 2 && warps == 4 && !features;
}

/// Warps per block of a split-KV kernel.
///   8 where there are no more head tiles than multiprocessors: most requests are then split, and
///     every split costs a merge (b1 8k on an H200: 15.7 us with 8 warps, 19.8 with 4).
///   4 otherwise: a block then has several requests, and of two blocks on an SM one computes while
///     the other one merges (b32 ramp 2k of fp8: 24.5 us with 4 warps, 28.6 with 8; but uniform b24
///     2k: 31.9 and 30.4).
///   4 in a fixed plan, whose bits must not depend on the rest of the batch.
///   4 on a device whose shared memory does not hold a block of 8 (!eight_fit).
constexpr int split_kv_warps(int64_t batch, int64_t head_tiles, int num_splits, int head_dim,
                             int multiprocessors, bool eight_fit) {
  const bool few_tiles = batch * head_tiles <= multiprocessors;
  return num_splits == 0 && head_dim < 256 && few_tiles && eight_fit ? 8 : 4;
}

} // namespace assay
