// SPDX-License-Identifier: Apache-2.0
// Internal: a call of attention as the text that judges it takes it. Plain data; arrays lie where
// that text runs.
#pragma once

#include <cstdint>

#include "oracle/bounds/row_formulas.h"
#include "oracle/device/tiers.h"
#include "oracle/rows/rows.h"

namespace assay::oracle::device {

inline constexpr int kTileKeys = 64; ///< keys that a block works on at a time
inline constexpr int kPartDim = 128; ///< elements of a key or a value that it works on at a time
inline constexpr int kMaxDim = 576;  ///< elements of a key or a value

struct DevicePool {
  const unsigned char *k, *v;
  int64_t k_stride_token, k_stride_head, v_stride_token, v_stride_head;
};

/** A tile of a row's declared order. Tiles of a state follow each other. */
struct RowTile {
  int32_t begin, end;
  int32_t own_blocks; ///< P.V steps
  int32_t two_parts, begins_state;
};

/** Scales of tokens, [keys of all runs, kv heads, blocks]: KeyRun::k_scale_at is the run's first
    key among them. `blocks` 0: there are none. */
struct ScaleArray {
  const float *data;
  int32_t blocks;
};

struct Call {
  const DevicePool *pools;
  const KeyRun *runs;
  const int64_t *first_run;
  ScaleArray k_scales, v_scales;
  const unsigned char *q, *o;
  const float *lse;     ///< null: none is written
  const float *q_scale; ///< [rows, heads]; null: 1
  const int64_t *q_at, *o_at, *lse_at;
  int64_t q_stride_head, out_stride_head, lse_stride_head;
  const int32_t *list, *begin, *end, *behind; ///< [rows]; behind null: 0
  Shard shard;
  const HeadInput *heads;
  const RowShape *shapes; ///< [rows, 2]: without and with a sink that counts
  ErrorModel model;
  RowFacts facts; ///< what all rows share
  assay_dtype q_dtype, kv_dtype, o_dtype;
  int32_t empty_lse;
  int32_t head_dim, dims, num_heads, num_kv_heads;
  float sm_scale;
  int32_t aligned;   ///< K and V may be read 8 elements at a time
  int32_t subnormal; ///< P may be subnormal in its format

  int32_t replays;           ///< 0: T0 and the LSE alone are judged
  const RowTile *tiles;      ///< where `replays`, as the next two
  const int64_t *first_tile; ///< [rows + 1]
  Format p_format;
  int32_t replay_scores; ///< T2 is judged
  int32_t mma_block, mma_fraction_bits;

  int64_t pairs;
  TierRow *rows;               ///< [pairs]
  unsigned long long *budgets; ///< [BudgetSizes::kCounts]
  ElementBounds *elements;     ///< [pairs, dims + 1, 3]; null: nobody asks

  /// How many tiers the call is judged by; the first is T0.
  ORACLE_HOST_DEVICE int tiers() const { return replays == 0 ? 1 : replay_scores != 0 ? 3 : 2; }
};

inline constexpr int kMostTiers = 3;

} // namespace assay::oracle::device
