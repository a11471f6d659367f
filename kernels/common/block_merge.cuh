// SPDX-License-Identifier: Apache-2.0
// Merge of the warps' states over disjoint keys of the same rows, through shared memory.
#pragma once

#include "kernels/arch/shared_storage.cuh"
#include "kernels/arch/sync.cuh"
#include "kernels/common/attention_tile.cuh"
#include "kernels/common/row_output.cuh"

namespace assay::ASSAY_TARGET {

/// fp32 (m, d, o) of every warp. The pad of four floats puts the rows that one store instruction
/// touches (2 apart) eight banks apart: no conflicts.
template <int kHeadDim, int kRows, int kWarps>
struct BlockMergeStorage {
  float o[kWarps][kRows][kHeadDim + 4];
  float m[kWarps][kRows];
  float d[kWarps][kRows];
};

/// Publishes this warp's tile state. Row sums must be reduced.
template <class Tile, class Storage>
ASSAY_DEVICE void publish_state(const Tile &tile, Storage &storage) {
  const int warp = arch::warp_id();
  constexpr int kRowTiles = Tile::kRows / 8;
  ASSAY_UNROLL
  for (int n = 0; n < kRowTiles; ++n)
    ASSAY_UNROLL
  for (int j = 0; j < 2; ++j) {
    const int row = Tile::row_index(n, j);
    const auto &state = tile.row(n, j);
    ASSAY_UNROLL
    for (int i = 0; i < 2 * Tile::kDimTiles; ++i)
      arch::shared_store(&storage.o[warp][row][Tile::component(i)], state.o[i]);
    if (arch::lane_id() < 4) {
      arch::shared_store(&storage.m[warp][row], state.m);
      arch::shared_store(&storage.d[warp][row], state.d);
    }
  }
}

/// Components dim .. dim + 7 of `row` merged over warps 0 .. kWarps - 1 in order.
template <class Storage, int kWarps>
ASSAY_DEVICE RowSlice merge_published(const Storage &storage, int row, int dim, float scale) {
  RowSlice merged = RowSlice::identity();
  for (int w = 0; w < kWarps; ++w) {
    RowSlice part;
    part.m = arch::shared_load(&storage.m[w][row]);
    part.d = arch::shared_load(&storage.d[w][row]);
    ASSAY_UNROLL
    for (int k = 0; k < 8; ++k)
      part.o[k] = arch::shared_load(&storage.o[w][row][dim + k]);
    merged.merge(part, scale);
  }
  return merged;
}

} // namespace assay::ASSAY_TARGET
