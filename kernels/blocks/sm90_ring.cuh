// SPDX-License-Identifier: Apache-2.0
// What the roles of a Sm90Core block share: a ring of slots, with tiles as wgmma reads them.
#pragma once

#include "kernels/arch/load_store.cuh"
#include "kernels/arch/mbarrier.cuh"
#include "kernels/arch/thread.cuh"
#include "kernels/blocks/sm90_policy.h"

namespace assay::ASSAY_TARGET {

/// The layout of a matrix of 16-bit elements as wgmma reads it: [head_dim / 64][rows] of 128 bytes,
/// swizzled. Its functions are those of KvLayout.
template <int kRows, int kHeadDim>
struct Sm90Layout {
  static constexpr int kChunks = kHeadDim / 8;     // 16-byte chunks of a row
  static constexpr int kBlockBytes = kRows * 128;  // bytes of 64 columns
  static constexpr int kVectors = kRows * kChunks; // vectors of the matrix
  static constexpr int kBytes = kRows * kHeadDim * 2;
  static ASSAY_DEVICE int index(int row, int chunk) {
    return chunk / 8 * (kRows * 8) + row * 8 + (chunk % 8 ^ (row & 7));
  }
  static ASSAY_DEVICE int index_from(int home, int row) { return (home ^ (row & 7)) + row * 8; }
  /// The distance of columns 16 step .. 16 step + 15 from the first ones, in bytes.
  static ASSAY_DEVICE int column_step(int step) { return step / 4 * kBlockBytes + step % 4 * 32; }
};

/// A position in the ring, whose slots are used round after round.
template <int kSlots>
struct Sm90Cursor {
  int slot = 0;
  uint32_t round = 0; // the parity of the phase
  ASSAY_DEVICE void advance() {
    if (++slot == kSlots) {
      slot = 0;
      round ^= 1;
    }
  }
  /// Moves from K to K, or from V to V: a tile has two slots.
  ASSAY_DEVICE void next_tile() {
    advance();
    advance();
  }
};

/// A slot holds K or V of a tile. Its `full` barrier counts the warps of the producer, and its
/// `empty` barrier those of the consumers. A ring must lie at a multiple of 1,024 bytes. Its type
/// does not say so, since its size would then be such a multiple, too, and a block needs every
/// kilobyte.
template <int kSlots, class Matrix>
struct Sm90Ring {
  arch::Vec4 slots[kSlots][Matrix::kVectors];
  arch::Mbarrier full[kSlots], empty[kSlots];
};

} // namespace assay::ASSAY_TARGET
