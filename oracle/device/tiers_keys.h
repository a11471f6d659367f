// SPDX-License-Identifier: Apache-2.0
// Internal: the memory of a team that works on one (row, head), and its keys.
#pragma once

#include "oracle/bounds/block_fma_step.h"
#include "oracle/device/call_rows.h"
#include "oracle/device/elements.h"
#include "oracle/device/tiers_call.h"

namespace assay::oracle::device {

/** `f(i, x)` of every element of a row of K. */
template <class F>
ORACLE_HOST_DEVICE inline void each_element(const Call &call, const float *fp8,
                                            const unsigned char *row, F f) {
  const int whole = call.aligned != 0 ? call.head_dim / 8 * 8 : 0;
  for (int i = 0; i < whole; i += 8) {
    float x[8];
    load_eight(call.kv_dtype, fp8, row + i * bytes_of(call.kv_dtype), x);
    for (int e = 0; e < 8; ++e)
      f(i + e, x[e]);
  }
  for (int i = whole; i < call.head_dim; ++i)
    f(i, load_element(call.kv_dtype, fp8, row, i));
}

/** What the sums of a component are, where two of them are no sums. */
struct Columns {
  static constexpr int kMost = 0, kLeast = 1; ///< the largest v, and the largest -v

  ORACLE_HOST_DEVICE static double start(int k) { return k <= kLeast ? -HUGE_VAL : 0.0; }
  ORACLE_HOST_DEVICE static double join(int k, double a, double b) {
    return k <= kLeast ? fmax(a, b) : a + b;
  }
};

/** Where a team keeps what all of its threads read. */
struct TeamMemory {
  RowNumbers row;
  TailErrors tail;
  ReplayScale scale;
  ReplayNumbers replay;
  double q[kMaxDim];
  block_fma::Operand operands[kMaxDim]; ///< the query's
  double largest[kMaxDim];              ///< |v|
  ColumnSums columns[kMaxDim];
  ReplaySums replayed[kMaxDim];
};

/** A team's scratch. */
struct TeamKeys {
  double *keys; ///< [kKeyArrays][stride]
  const unsigned char **k_row, **v_row;
  double *sums;
  TierElement *elements; ///< [tiers, dims + 1]
  TileView *tiles;
  TileErrors *errors; ///< of the tiles
  int64_t stride;

  ORACLE_HOST_DEVICE TeamKeys(const TierScratch &scratch, unsigned char *at)
      : stride(scratch.keys) {
    keys = reinterpret_cast<double *>(at);
    k_row = reinterpret_cast<const unsigned char **>(keys + kKeyArrays * stride);
    v_row = k_row + stride;
    at += scratch.key_bytes();
    sums = reinterpret_cast<double *>(at);
    at += scratch.sum_bytes();
    elements = reinterpret_cast<TierElement *>(at);
    at += scratch.element_bytes();
    tiles = reinterpret_cast<TileView *>(at);
    errors = reinterpret_cast<TileErrors *>(tiles + scratch.tiles);
  }

  ORACLE_HOST_DEVICE double *at(KeyArray array) const { return keys + array * stride; }
  ORACLE_HOST_DEVICE void put(int j, const Logit &logit) const {
    at(kX)[j] = logit.x;
    at(kRadius)[j] = logit.radius;
    at(kError)[j] = logit.error;
  }
  ORACLE_HOST_DEVICE Logit logit(int j) const { return {at(kX)[j], at(kRadius)[j], at(kError)[j]}; }
};

ORACLE_HOST_DEVICE inline void place_key(const Call &call, int list, int kv_head, int position,
                                         int j, const TeamKeys &keys) {
  const KeyRun &run =
      run_among(call.runs, call.first_run[list], call.first_run[list + 1] - 1, position);
  const DevicePool &pool = call.pools[run.pool];
  const int64_t slot = position - run.position, bytes = bytes_of(call.kv_dtype);
  keys.k_row[j] =
      pool.k + (run.k_at + slot * pool.k_stride_token + kv_head * pool.k_stride_head) * bytes;
  keys.v_row[j] =
      pool.v + (run.v_at + slot * pool.v_stride_token + kv_head * pool.v_stride_head) * bytes;
}

} // namespace assay::oracle::device
