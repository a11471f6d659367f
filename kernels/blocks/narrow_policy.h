// SPDX-License-Identifier: Apache-2.0
// Tuning of NarrowCore, as data.
#pragma once

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

} // namespace assay
