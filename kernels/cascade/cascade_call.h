// SPDX-License-Identifier: Apache-2.0
// The call of cascade_attention: arguments checked and turned into device parameters. Nothing here
// touches a device.
#pragma once

#include "kernels/abi/plugin.h"
#include "kernels/cascade/cascade_schedule.h"
#include "kernels/common/params.h"
#include "kernels/host/arithmetic.h"

#include <algorithm>
#include <array>
#include <span>

namespace assay {

/// One level that has segments.
struct CascadeLevelCall {
  PagedKvParams kv;
  const int32_t *segment_indptr;
  CascadeLevelSchedule schedule;
  int32_t first_state; // states of earlier levels
};

struct CascadeCall {
  assay_dtype dtype;
  int32_t head_dim;
  AttentionParams attention;
  CascadeShape shape;
  std::array<CascadeLevelCall, ASSAY_MAX_CASCADE_LEVELS> level; // those with segments
  int num_levels = 0;
  int64_t states = 0;         // states of a row: splits of all levels
  int finish = -1;            // the level whose kernel merges, or none
  float *o_accum, *lse_accum; // in the workspace
  bool empty;

  std::span<const CascadeLevelCall> levels() const {
    return {level.data(), static_cast<size_t>(num_levels)};
  }
};

/// Its kernels differ: the smallest tile (of the narrow one), the deepest sum (of the wide one,
/// where a lane adds pairs of weights, one per 8 keys, and two shuffles join lanes) and the most
/// states bound all.
constexpr assay_arithmetic cascade_arithmetic() {
  constexpr int kTile = narrow_policy(128).tile;
  assay_arithmetic a = tensor_core_arithmetic(kTile, mma_policy(128).tile, kNarrowWarps, 1 << 12);
  a.sum_depth = std::max(a.sum_depth, 1 + sm90_tile(128) / 8 + 2);
  return a;
}

/// cascade_attention in the table of kernels (kernels/api/kernels.def).
struct Cascade {
  using Params = assay_cascade_params;
  using Call = CascadeCall;
  static constexpr assay_family kFamily = ASSAY_FAMILY_CASCADE;
  static constexpr assay_arithmetic kArithmetic = cascade_arithmetic();
  static constexpr assay_batch_invariance kBatchInvariance = ASSAY_BATCH_FIXED;

  static assay_status build(const Params *params, Call &call);
  /// Looks at shapes and at the levels.
  static assay_status workspace_size(const Params *params, uint64_t *bytes);
  static assay_status key_order(const void *params, assay_key_tile *tiles, int64_t capacity,
                                int64_t *first);
};

} // namespace assay
