// SPDX-License-Identifier: Apache-2.0
// Tuning of cascade attention, as data.
#pragma once

#include "kernels/plan/split_plan.h"

#include <cstdint>

namespace assay {

/// First key of split `split` of a segment. Splits have equal numbers of tiles, so that all tiles
/// of a segment but the last are whole, and tiles stay aligned to pages.
ASSAY_HOST_DEVICE int32_t cascade_split_begin(int32_t len, int32_t splits, int32_t split,
                                              int32_t tile) {
  const int64_t begin = int64_t{split_begin((len + tile - 1) / tile, splits, split)} * tile;
  return begin < len ? static_cast<int32_t>(begin) : len;
}

/// The slot of the first tile of a segment. Tiles of `rows` rows count through all segments of a
/// level, and some slots stay idle. Segment s begins at slot
///   s + floor((indptr[s] * gqa_group_size - s) / rows).
/// Whatever the other segments are, the next one begins at least
///   ceil((indptr[s + 1] - indptr[s]) * gqa_group_size / rows) slots later.
ASSAY_HOST_DEVICE int64_t cascade_first_slot(int64_t segment, int64_t request,
                                             int64_t gqa_group_size, int64_t rows) {
  const int64_t past = request * gqa_group_size - segment;
  return segment + (past >= 0 ? past / rows : -((rows - 1 - past) / rows));
}
ASSAY_HOST_DEVICE int64_t cascade_tile_slots(int64_t segments, int64_t batch,
                                             int64_t gqa_group_size, int64_t rows) {
  return cascade_first_slot(segments, batch, gqa_group_size, rows);
}

/// The grain of splits of the narrow kernel.
inline constexpr int kNarrowSplitTokens = 64;
/// Blocks that write the rows of requests which the finishing level does not cover.
inline constexpr int kUncoveredBlocks = 8;

} // namespace assay
