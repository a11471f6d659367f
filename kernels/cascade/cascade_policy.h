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
/// s + floor((indptr[s] * gqa_group_size - s) / rows): the next one begins at least
/// ceil((indptr[s + 1] - indptr[s]) * gqa_group_size / rows) slots later, whatever the
/// others are.
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
/// Blocks that look for requests which the level that finishes a call leaves out.
inline constexpr int kUncoveredBlocks = 8;

} // namespace assay
