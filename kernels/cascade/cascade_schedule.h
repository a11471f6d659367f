// SPDX-License-Identifier: Apache-2.0
// Which kernel serves a level of a cascade, and into how many splits its segments are cut. Both
// follow from shapes alone, since lengths live on the device.
#pragma once

#include "kernels/abi/assay.h"
#include "kernels/blocks/mma_policy.h"
#include "kernels/blocks/narrow_policy.h"
#include "kernels/blocks/sm90_policy.h"
#include "kernels/cascade/cascade_policy.h"
#include "kernels/plan/device_model.h"

#include <algorithm>
#include <array>
#include <cstdint>

namespace assay {

/// The core of the kernel that serves a level.
enum class CascadePath : uint8_t { kSm90, kMma, kNarrow };
inline constexpr std::array<CascadePath, 3> kCascadePaths = {
    CascadePath::kSm90, CascadePath::kMma, CascadePath::kNarrow}; // in the order of launches

/// What a schedule depends on.
struct CascadeShape {
  int64_t batch, gqa_group_size, kv_heads, head_dim;
  int64_t multiprocessors;
  bool warpgroups;         // the device has them
  bool narrow_fits = true; // it has shared memory for a block of the narrow kernel
};

struct CascadeLevelShape {
  int64_t segments, tokens; // the most a segment may have
};

struct CascadeLevelSchedule {
  CascadePath path;
  int32_t splits;
  int32_t warps; // warps of a team of the narrow kernel
};

/// Warpgroups serve segments of so many rows or more.
inline constexpr int64_t kMinSm90Rows = 32;

constexpr int64_t divide_up(int64_t a, int64_t b) { return (a + b - 1) / b; }

/// Row tiles of 8 that a team of the narrow kernel has. All levels of a call have as many.
constexpr int narrow_row_tiles(const CascadeShape &shape) {
  return shape.gqa_group_size <= 8 || shape.head_dim == 256 ? 1 : 2;
}

/// The path of a level, by the mean number of rows of its segments. The narrow kernel reads keys
/// once per 8 or 16 rows. It serves segments of so many rows; it also serves segments of no more
/// rows than one request has, up to 16. Where it does not fit (head_dim 256 in the 99 KB of a block
/// of compute capability 8.6, 8.9 or 12.0), mma tiles serve them, which need at most 96 KB.
constexpr CascadePath cascade_path(const CascadeShape &shape, const CascadeLevelShape &level) {
  const int64_t rows =
      divide_up(shape.batch * shape.gqa_group_size, std::max<int64_t>(level.segments, 1));
  if (shape.narrow_fits && rows <= std::max<int64_t>(8 * narrow_row_tiles(shape),
                                                     std::min<int64_t>(shape.gqa_group_size, 16)))
    return CascadePath::kNarrow;
  return shape.warpgroups && rows >= kMinSm90Rows ? CascadePath::kSm90 : CascadePath::kMma;
}

/// Rows of a block; a split is a multiple of cascade_split_tile() keys.
constexpr int32_t cascade_block_rows(const CascadeShape &shape, CascadePath path) {
  const auto head_dim = static_cast<int>(shape.head_dim);
  return path == CascadePath::kSm90  ? kSm90Rows
         : path == CascadePath::kMma ? mma_policy(head_dim).rows()
                                     : 8 * narrow_row_tiles(shape);
}
constexpr int32_t cascade_split_tile(const CascadeShape &shape, CascadePath path) {
  const auto head_dim = static_cast<int>(shape.head_dim);
  return path == CascadePath::kSm90  ? sm90_tile(head_dim)
         : path == CascadePath::kMma ? mma_policy(head_dim).tile
                                     : kNarrowSplitTokens;
}

/// Warps of a team. Over short segments it is the smallest number that leaves every SM seven warps
/// to run. Over long ones it is all: the more warps share the rows, the better they are balanced.
constexpr int32_t narrow_warps(const CascadeShape &shape, int64_t tiles, int64_t tokens) {
  constexpr int64_t kWarpsPerSm = 7, kShortTokens = 512;
  int32_t warps = kNarrowWarps;
  while (warps > 1 && tokens <= kShortTokens &&
         tiles * (warps / 2) >= kWarpsPerSm * shape.multiprocessors)
    warps /= 2;
  return warps;
}

namespace cascade_detail {

inline constexpr int64_t kMaxSplits = 64;

/// Blocks of one split of a level whose segments are alike.
constexpr int64_t blocks_of(const CascadeShape &shape, const CascadeLevelShape &level,
                            CascadePath path) {
  const int64_t rows = divide_up(shape.batch * shape.gqa_group_size, level.segments);
  return level.segments * divide_up(rows, cascade_block_rows(shape, path)) * shape.kv_heads;
}

/// What it costs to cut the levels of warpgroups into blocks of about `tiles` tiles each. The unit
/// is the time of one tile in a block (DeviceModel). It is the sum of
///   the waves, which have a block per SM: in each wave a block has its tiles and what goes with
///   them; the partials of each split of a row, which are written, and then read by the merge.
template <class Levels, class Schedule>
double sm90_cost(const CascadeShape &shape, const Levels &levels, const Schedule &schedule,
                 int num_levels, int64_t tiles) {
  int64_t blocks = 0, splits = 0;
  for (int l = 0; l < num_levels; ++l) {
    if (schedule[l].path != CascadePath::kSm90 || levels[l].segments == 0) continue;
    const int64_t most = divide_up(levels[l].tokens, cascade_split_tile(shape, CascadePath::kSm90));
    const int64_t cuts = std::clamp<int64_t>(divide_up(most, tiles), 1, kMaxSplits);
    blocks += blocks_of(shape, levels[l], CascadePath::kSm90) * cuts;
    splits += cuts;
  }
  const double waves = static_cast<double>(divide_up(blocks, shape.multiprocessors));
  const double partial = 8.0 * static_cast<double>(shape.batch * shape.gqa_group_size *
                                                   shape.kv_heads * shape.head_dim * splits);
  return waves * (static_cast<double>(tiles) + kH200.block_tiles) +
         partial / static_cast<double>(kH200.tile_bytes);
}

} // namespace cascade_detail

/// Makes the schedule of the levels. num_splits > 0 forces so many splits of every segment, and one
/// kernel for all levels: the results of a request then do not depend on the requests beside it.
template <class Levels, class Schedule>
void schedule_cascade(const CascadeShape &shape, const Levels &levels, int num_levels,
                      int num_splits, Schedule &schedule) {
  using namespace cascade_detail;
  int64_t longest = 1;
  for (int l = 0; l < num_levels; ++l) {
    schedule[l] = {num_splits > 0 ? CascadePath::kMma : cascade_path(shape, levels[l]),
                   static_cast<int32_t>(num_splits), kNarrowWarps};
    if (schedule[l].path == CascadePath::kSm90)
      longest = std::max(
          longest, divide_up(levels[l].tokens, cascade_split_tile(shape, CascadePath::kSm90)));
  }
  if (num_splits > 0) return;
  int64_t tiles = longest;
  double least = sm90_cost(shape, levels, schedule, num_levels, longest);
  for (int64_t cuts = 2; cuts <= std::min(longest, kMaxSplits); ++cuts) {
    const int64_t candidate = divide_up(longest, cuts);
    const double cost = sm90_cost(shape, levels, schedule, num_levels, candidate);
    if (cost < least) {
      least = cost;
      tiles = candidate;
    }
  }
  // The other levels get two blocks for every multiprocessor, unless segments are short. With fewer
  // keys than these a split costs more in partials than it gains in parallelism.
  constexpr int64_t kMinSplitTokens = 256;
  for (int l = 0; l < num_levels; ++l) {
    const int64_t tile = cascade_split_tile(shape, schedule[l].path);
    int64_t splits = 1;
    if (levels[l].segments == 0) {
      splits = 1;
    } else if (schedule[l].path == CascadePath::kSm90) {
      splits = divide_up(divide_up(levels[l].tokens, tile), tiles);
    } else {
      const int64_t blocks = blocks_of(shape, levels[l], schedule[l].path);
      splits = std::min(divide_up(2 * shape.multiprocessors, std::max<int64_t>(blocks, 1)),
                        divide_up(levels[l].tokens, kMinSplitTokens));
    }
    schedule[l].splits = static_cast<int32_t>(std::clamp<int64_t>(splits, 1, kMaxSplits));
    if (schedule[l].path == CascadePath::kNarrow && schedule[l].splits == 1 &&
        levels[l].segments > 0)
      schedule[l].warps =
          narrow_warps(shape, blocks_of(shape, levels[l], CascadePath::kNarrow), levels[l].tokens);
  }
}

} // namespace assay
