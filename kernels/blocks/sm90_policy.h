// SPDX-License-Identifier: Apache-2.0
// Tuning of Sm90Core, as data.
#pragma once

namespace assay {

/// Tuning of a block of warpgroups (sm90_core.cuh).
struct Sm90Policy {
  int tile;  // keys per tile
  int slots; // slots of the ring; a tile takes two, for K and V
  int ahead; // copies of K or V in flight while one more is issued
};
inline constexpr int kSm90Rows = 128;            // query rows of a block, 64 per warpgroup
inline constexpr int kMaxSm90Bytes = 227 * 1024; // shared memory that sm_90 gives a block

/// Keys of a tile: as many as registers hold the scores of, beside O.
constexpr int sm90_tile(int head_dim) { return head_dim == 256 ? 64 : 128; }

/// A block has 227 KB of shared memory. A slot takes 32 KB (16 KB with head_dim 64), and the
/// queries take 16 to 64 KB. The bytes of an fp8 cache wait in stages of half a slot: there is one
/// stage for every copy in flight, and one more.
constexpr Sm90Policy sm90_policy(int head_dim, int kv_bytes) {
  const bool widens = kv_bytes == 1;
  return {.tile = sm90_tile(head_dim),
          .slots = head_dim == 256 || widens ? 4 : 6,
          .ahead = widens && head_dim < 256 ? 3 : 1};
}

} // namespace assay
