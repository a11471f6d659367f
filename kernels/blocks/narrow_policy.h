// SPDX-License-Identifier: Apache-2.0
// Tuning of NarrowCore, as data.
#pragma once

#include <cstdint>

namespace assay {

/// Tuning of a block whose warps walk the keys side by side (narrow_core.cuh).
struct NarrowPolicy {
  int tile;   // keys per warp tile
  int stages; // cp.async ring depth, tiles
};

/// A stage holds 8 KB of K and V (16 KB with head_dim 256), and one of the two is ahead, as in
/// DecodeCore.
constexpr NarrowPolicy narrow_policy(int head_dim) {
  return {.tile = head_dim == 64 ? 32 : 16, .stages = 2};
}

/// Warps of such a block.
inline constexpr int kNarrowWarps = 4;

/// Shared memory of such a block: the rings of its warps, of K and of V in 16 bits.
constexpr int64_t narrow_shared_bytes(int head_dim) {
  const NarrowPolicy policy = narrow_policy(head_dim);
  return int64_t{kNarrowWarps} * policy.stages * 2 * policy.tile * head_dim * 2;
}

} // namespace assay
