// SPDX-License-Identifier: Apache-2.0
// Tuning of Sm90Core, as data.
#pragma once

namespace assay {

/// Blocks of warpgroups (sm90_core.cuh).
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

} // namespace assay
