// SPDX-License-Identifier: Apache-2.0
// Merges the states that warps have of disjoint keys of the same rows, through shared memory.
#pragma once

#include "kernels/arch/shared_storage.cuh"
#include "kernels/arch/sync.cuh"
#include "kernels/common/attention_tile.cuh"
#include "kernels/common/row_output.cuh"

namespace assay::ASSAY_TARGET {

/// (m, d, o) of every warp. Components are stored in blocks of eight. The index of a block within
/// 32 components is XORed with half the row: the rows that one store instruction touches, which are
/// 2 apart, then lie eight banks apart and do not conflict. Padding would do the same, but blocks
/// of 8 warps would then not fit on an A100.
template <class R, int kHeadDim, int kRows, int kWarps>
struct BlockMergeStorage {
  using Number = R;
  alignas(16) R o[kWarps][kRows][kHeadDim]; // component dim at index(row, dim)
  R m[kWarps][kRows];
  R d[kWarps][kRows];

  /// Eight components from a multiple of eight on keep their order.
  static ASSAY_DEVICE int index(int row, int dim) { return dim ^ (row / 2 % 4 * 8); }
};

/// Publishes the state of this warp's tile, as that of `warp`. reduce_sums() must have been called.
template <class Tile, class Storage>
ASSAY_DEVICE void publish_state(const Tile &tile, Storage &storage,
                                int warp = static_cast<int>(arch::warp_id())) {
  constexpr int kRowTiles = Tile::kRows / 8;
  ASSAY_UNROLL
  for (int n = 0; n < kRowTiles; ++n)
    ASSAY_UNROLL
  for (int j = 0; j < 2; ++j) {
    const int row = Tile::row_index(n, j);
    const auto &state = tile.row(n, j);
    // Component i + 4 lies 32 behind component i, and the XOR leaves multiples of 32 alone.
    int first[4];
    ASSAY_UNROLL
    for (int i = 0; i < 4; ++i)
      first[i] = Tile::kAdjacent && i % 2 == 1 ? first[i - 1] + 1
                                               : Storage::index(row, Tile::component(i));
    ASSAY_UNROLL
    for (int i = 0; i < 2 * Tile::kDimTiles; ++i)
      arch::shared_store(&storage.o[warp][row][first[i % 4] + i / 4 * 32], state.o[i]);
    if (arch::lane_id() < 4) {
      arch::shared_store(&storage.m[warp][row], state.m);
      arch::shared_store(&storage.d[warp][row], state.d);
    }
  }
}

/// Components dim .. dim + kDims - 1 of `row`, merged over warps first .. first + count - 1 in this
/// order. kDims is 4 or 8, dim is a multiple of it, and count is at most kMax. The maximum of all
/// states comes first, so that every state is scaled once and no load waits for another.
template <int kMax, int kDims, class Storage>
ASSAY_DEVICE auto merge_published(const Storage &storage, int first, int count, int row, int dim,
                                  typename Storage::Number scale) {
  using R = typename Storage::Number;
  using RowSlice = AttentionState<R, kDims>;
  RowSlice merged = RowSlice::identity();
  const int from = Storage::index(row, dim);
  R m[kMax];
  ASSAY_UNROLL
  for (int w = 0; w < kMax; ++w) {
    m[w] = w < count ? R(arch::shared_load(&storage.m[first + w][row])) : R(arch::neg_infinity());
    merged.m = arch::max_num(merged.m, m[w]);
  }
  ASSAY_UNROLL
  for (int w = 0; w < kMax; ++w) {
    if (w >= count) continue;
    const R weight = RowSlice::weight(m[w], merged.m, scale);
    merged.d = arch::fma_rn(arch::shared_load(&storage.d[first + w][row]), weight, merged.d);
    ASSAY_UNROLL
    for (int k = 0; k < kDims; k += 4) {
      const auto o = arch::shared_load(
          reinterpret_cast<const arch::Vec4 *>(&storage.o[first + w][row][from + k]));
      merged.o[k] = arch::fma_rn(arch::word_to<R>(o.x), weight, merged.o[k]);
      merged.o[k + 1] = arch::fma_rn(arch::word_to<R>(o.y), weight, merged.o[k + 1]);
      merged.o[k + 2] = arch::fma_rn(arch::word_to<R>(o.z), weight, merged.o[k + 2]);
      merged.o[k + 3] = arch::fma_rn(arch::word_to<R>(o.w), weight, merged.o[k + 3]);
    }
  }
  return merged;
}

/// Adds the low part of a row whose weights were in two parts (AttentionTile). An infinite value
/// times a low part of zero is NaN: where the low part is not finite, the high part stands alone.
template <class R, int kDims>
ASSAY_DEVICE void add_low_part(AttentionState<R, kDims> &high,
                               const AttentionState<R, kDims> &low) {
  ASSAY_UNROLL
  for (int k = 0; k < kDims; ++k)
    if (low.o[k] - low.o[k] == 0.0f) high.o[k] += low.o[k];
}

} // namespace assay::ASSAY_TARGET
