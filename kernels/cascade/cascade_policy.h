// SPDX-License-Identifier: Apache-2.0
// Tuning of cascade attention, as data.
#pragma once

#include "kernels/plan/split_plan.h"

#include <cstdint>

namespace assay {

/// First key of split `split` of a segment: splits are equal in tiles, so that all but the last
/// tile of a segment are whole, and tiles keep their place in pages.
ASSAY_HOST_DEVICE int32_t cascade_split_begin(int32_t len, int32_t splits, int32_t split,
                                              int32_t tile) {
  const int64_t begin = int64_t{split_begin((len + tile - 1) / tile, splits, split)} * tile;
  return begin < len ? static_cast<int32_t>(begin) : len;
}

/// Tiles of `rows` rows are counted through all segments of a level. Segment s begins at slot
/// s + floor((indptr[s] * group - s) / rows): the next one begins at least
/// ceil((indptr[s + 1] - indptr[s]) * group / rows) slots later, whatever the others are.
ASSAY_HOST_DEVICE int64_t cascade_first_slot(int64_t segment, int64_t request, int64_t group,
                                             int64_t rows) {
  const int64_t past = request * group - segment;
  return segment + (past >= 0 ? past / rows : -((rows - 1 - past) / rows));
}
ASSAY_HOST_DEVICE int64_t cascade_tile_slots(int64_t segments, int64_t batch, int64_t group,
                                             int64_t rows) {
  return cascade_first_slot(segments, batch, group, rows);
}

struct MmaPolicy {
  int warps;     // per block; each owns 8 * row_tiles query rows
  int tile;      // keys per block tile, loaded by all warps together
  int stages;    // cp.async ring depth, tiles
  int row_tiles; // row tiles of 8 per warp
  constexpr int rows() const { return warps * 8 * row_tiles; }
};

/// 64 rows a block: a prefix shared by 8 requests with a group of 8 heads is read once. With
/// head_dim 256 the accumulators of 16 rows a warp do not fit in registers.
constexpr MmaPolicy mma_policy(int head_dim) {
  return {.warps = 4, .tile = 32, .stages = 3, .row_tiles = head_dim == 256 ? 1 : 2};
}

/// Blocks of warpgroups (cascade_wide.cuh).
struct Sm90Policy {
  int tile;  // keys per tile
  int slots; // of the ring; a tile takes two, for K and V
  int ahead; // copies of K or V in flight while one more is issued
};
inline constexpr int kSm90Rows = 128;            // of a block, 64 for each of two warpgroups
inline constexpr int kMaxSm90Bytes = 227 * 1024; // of shared memory that sm_90 gives a block

/// Scores of 128 keys, or with head_dim 256 of 64, are what the registers hold beside O.
constexpr int sm90_tile(int head_dim) { return head_dim == 256 ? 64 : 128; }

/// A slot has 32 KB (16 KB with head_dim 64) and the queries 16 to 64 KB of the 227 KB of a block.
/// Bytes of an fp8 cache wait in stages of half a slot: one for every copy in flight, and one more.
constexpr Sm90Policy sm90_policy(int head_dim, int kv_bytes) {
  const bool widens = kv_bytes == 1;
  return {.tile = sm90_tile(head_dim),
          .slots = head_dim == 256 || widens ? 4 : 6,
          .ahead = widens && head_dim < 256 ? 3 : 1};
}

/// Blocks of warps that walk the keys side by side (cascade_narrow.cuh).
struct NarrowPolicy {
  int tile;   // keys per warp tile
  int stages; // cp.async ring depth, tiles
};

/// As in decode: a stage holds 8 KB of K and V (16 KB with head_dim 256), one is ahead.
constexpr NarrowPolicy narrow_policy(int head_dim) {
  return {.tile = head_dim == 64 ? 32 : 16, .stages = 2};
}

/// Warps of such a block, and the grain of splits.
inline constexpr int kNarrowWarps = 4, kNarrowSplitTokens = 64;
/// Blocks that look for requests which the level that finishes a call leaves out.
inline constexpr int kUncoveredBlocks = 8;

} // namespace assay
