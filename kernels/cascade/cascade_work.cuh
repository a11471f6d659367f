// SPDX-License-Identifier: Apache-2.0
// What the cascade kernels share: the levels, and which block has which rows and keys.
#pragma once

#include "kernels/abi/assay.h"
#include "kernels/arch/load_store.cuh"
#include "kernels/arch/shuffle.cuh"
#include "kernels/cascade/cascade_policy.h"
#include "kernels/common/params.h"

namespace assay::ASSAY_TARGET {

struct CascadeLevelParams {
  PagedKvParams kv;              // rows = segments
  const int32_t *segment_indptr; // [segments + 1] request offsets
  int32_t first_block;           // blocks of earlier levels of the launch
  int32_t splits;                // splits of every segment
  int32_t first_state;           // states of earlier levels of the call

  ASSAY_FIELDS(kv, segment_indptr, first_block, splits, first_state)
};

/// The parameters of one launch: the levels that its kernel serves. The launch that finishes the
/// call has all levels.
struct CascadeParams {
  AttentionParams attention;
  CascadeLevelParams levels[ASSAY_MAX_CASCADE_LEVELS];
  int32_t num_levels, num_states;
  int32_t finish_level; // >= 0: the launch serves this level alone, and finishes the call; else -1
  int32_t team_warps, num_teams; // teams of the narrow kernel
  float *o_accum;                // [num_states, batch, num_qo_heads, head_dim]
  float *lse_accum;              // [num_states, batch, num_qo_heads], base 2

  ASSAY_FIELDS(attention, levels, num_levels, num_states, finish_level, team_warps, num_teams,
               o_accum, lse_accum)
};

/// What one block works on.
struct CascadeWork {
  int level, segment, split, kv_head;
  int first_request, num_rows; // rows = requests * gqa_group_size, packed request-major
  int first_row;               // first row of this block's tile
  int kv_begin, kv_end;

  ASSAY_DEVICE const PagedKvParams &keys(const CascadeParams &params) const {
    return params.levels[level].kv;
  }
  /// The request and the query head of a row.
  ASSAY_DEVICE int request(const AttentionParams &a, int row) const {
    return first_request + row / a.gqa_group_size;
  }
  ASSAY_DEVICE int head(const AttentionParams &a, int row) const {
    return kv_head * a.gqa_group_size + row % a.gqa_group_size;
  }
  /// What makes base-2 logits of scores.
  ASSAY_DEVICE float scale_log2(const CascadeParams &params) const {
    return params.attention.scale_log2;
  }
  template <class E>
  ASSAY_DEVICE const E *query(const CascadeParams &params, int row) const {
    const AttentionParams &a = params.attention;
    return static_cast<const E *>(a.q) + request(a, row) * a.q_stride_batch +
           head(a, row) * a.q_stride_head;
  }
  ASSAY_DEVICE int state(const CascadeParams &params) const {
    return params.levels[level].first_state + split;
  }
  /// Where the partial of a row goes, counted in rows of o_accum.
  ASSAY_DEVICE int64_t partial_row(const CascadeParams &params, int row) const {
    const AttentionParams &a = params.attention;
    return (int64_t{state(params)} * a.batch + request(a, row)) * a.num_qo_heads + head(a, row);
  }
};

/// The index of the highest bit of a run of ones that begins at bit 0, or 0 where there is none.
ASSAY_DEVICE int highest_of(uint32_t ones) {
  int highest = 0;
  ASSAY_UNROLL
  for (int bit = arch::kWarpSize / 2; bit > 0; bit /= 2)
    if ((ones >> (highest + bit) & 1) != 0) highest += bit;
  return highest;
}

/// A segment, the requests it serves, and its length.
struct FoundSegment {
  int segment, first_request, end_request, length;
};

/// The last segment of a level for which begins_by(segment, its first request) holds, or the first
/// segment where it holds for none. All lanes of a warp search together. One round of loads near
/// `guess` finds it, where segments serve about equally many requests.
template <class BeginsBy>
ASSAY_DEVICE FoundSegment find_segment(const CascadeLevelParams &level, int guess,
                                       BeginsBy begins_by) {
  constexpr int kLast = arch::kWarpSize - 1;
  const int lane = static_cast<int>(arch::lane_id()), segments = level.kv.rows;
  int low = guess > kLast / 2 ? guess - kLast / 2 : 0, request, length;
  uint32_t mask;
  while (true) {
    const int probe = low + lane < segments ? low + lane : segments;
    request = arch::global_load_readonly(level.segment_indptr + probe);
    length = probe < segments ? arch::global_load_readonly(level.kv.seq_lens + probe) : 0;
    mask = arch::ballot(probe < segments && begins_by(probe, request));
    if ((low == 0 || (mask & 1) != 0) && mask >> kLast == 0) break;
    low = 0;
    for (int count = segments; count > kLast;) {
      const int step = (count + kLast) / arch::kWarpSize, next = low + lane * step;
      const bool begins =
          lane * step < count &&
          (lane == 0 || begins_by(next, arch::global_load_readonly(level.segment_indptr + next)));
      const int last = highest_of(arch::ballot(begins)) * step;
      low += last;
      count = count - last < step ? count - last : step;
    }
  }
  const int last = highest_of(mask);
  return {low + last, arch::shfl_idx(request, last), arch::shfl_idx(request, last + 1),
          arch::shfl_idx(length, last)};
}

/// Finds the work of a block: its rows among tiles of kRows rows, and its keys among tiles of
/// kTile. Returns false where its slot is idle. Tiles of the same keys are neighbours: they run
/// side by side, and L2 serves all but one of them.
template <int kRows, int kTile>
ASSAY_DEVICE bool locate_cascade_work(const CascadeParams &params, int block, CascadeWork &work) {
  work.level = params.finish_level >= 0 ? params.finish_level : 0;
  while (params.finish_level < 0 && work.level + 1 < params.num_levels &&
         params.levels[work.level + 1].first_block <= block)
    ++work.level;
  const CascadeLevelParams &level = params.levels[work.level];
  const int heads = params.attention.num_kv_heads, gqa_group_size = params.attention.gqa_group_size;
  const auto slots = static_cast<int>(
      cascade_tile_slots(level.kv.rows, params.attention.batch, gqa_group_size, kRows));
  int rest = block - level.first_block;
  const int slot = rest % slots;
  rest /= slots;
  work.kv_head = rest % heads;
  work.split = rest / heads;
  const auto first_slot = [&](int segment, int request) {
    return static_cast<int>(cascade_first_slot(segment, request, gqa_group_size, kRows));
  };
  const FoundSegment found =
      find_segment(level, static_cast<int>(int64_t{slot} * level.kv.rows / slots),
                   [&](int segment, int request) { return first_slot(segment, request) <= slot; });
  work.segment = found.segment;
  work.first_request = found.first_request;
  work.num_rows = (found.end_request - found.first_request) * gqa_group_size;
  work.first_row = (slot - first_slot(found.segment, found.first_request)) * kRows;
  work.kv_begin = cascade_split_begin(found.length, level.splits, work.split, kTile);
  work.kv_end = cascade_split_begin(found.length, level.splits, work.split + 1, kTile);
  return work.first_row >= 0 && work.first_row < work.num_rows;
}

} // namespace assay::ASSAY_TARGET
