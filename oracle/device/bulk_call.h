// SPDX-License-Identifier: Apache-2.0
// Internal: a call of attention as the device passes take it. Plain data, arrays on the device.
#pragma once

#include <cstdint>

#include "oracle/bounds/row_formulas.h"
#include "oracle/device/bulk.h"
#include "oracle/rows/rows.h"

namespace assay::oracle::device {

inline constexpr int kTileKeys = 64;
inline constexpr int kMaxPairs = 8; ///< (row, head) pairs of a unit: rows of one MMA
inline constexpr int kMaxDim = 256;
inline constexpr int kMaxPools = 8;
inline constexpr int kPlainDim = 128;  ///< elements of K and V in the plain pass
inline constexpr int kPlainTiles = 64; ///< of a unit of it at most: its sums are in fp32

/** A list's share of a launch. Its units: kv heads x chunks of keys x blocks of pairs. */
struct ListWork {
  int64_t first_unit;
  int32_t first_row, rows; ///< of the launch's row_ids
  int32_t list;
  int32_t begin, end; ///< keys that some row of the list sees
  int32_t chunk;      ///< keys a unit, a multiple of kTileKeys
  int32_t chunks, blocks;
  int32_t run_keys; ///< of every run but the last; 0: they differ
};

/** Of a (row, head) pair, between the passes. */
struct PairState {
  double x_max, x_abs, x_error_max;
  double z;          ///< sum of 2^(x - x_max)
  double mass_floor; ///< at most the row's mass_low
  double query_max;  ///< largest |q|
  int32_t no_claim;  ///< 1: nothing is claimed
  int32_t rough;     ///< 1: sums in 16 bits would widen its bounds by more than 1.001
};

/** Sums of a unit for one of its pairs. First pass. */
struct FirstSums {
  double top; ///< an integer: weights are on the scale 2^-top
  double z;
  double low; ///< sum of weights as low as their scores' errors may make them
  double x_max, x_abs, x_error_max, query_max;
  double scored; ///< with a softcap, what a score may be off by in front of it
  int32_t no_claim;
};

/** Second pass, on the scale 2^-x_max. */
struct SecondSums {
  double z, mean, low, error_mass;
  double weight_error, log_omega, worst;
  int32_t vague, v_subnormal;
};

/** Sums of a unit for a pair and a component of V. */
struct ComponentSums {
  double magnitude, centered, subnormal;
  float v_min, v_max;
};

/** Sums of a unit for one of its pairs, on the scale 2^-top; the plain pass (plain.cuh). */
struct PlainSums {
  double top, z;
  double mean; ///< sum of w (e^y - 1), not too small
  double low;  ///< sum of w e^-y, not too large
  double x_abs, x_error, query_max;
  float above, below; ///< the largest and the smallest logit less `top`, not too small
  int32_t plain;
};

/** Of a unit, for a pair and a component. Weights as sums of parts: `w`, `b` for w (e^y - 1). */
struct PlainComponent {
  double value;        ///< sum w v
  float magnitude;     ///< sum (w + b) |v|
  float error;         ///< sum b v
  float error_around;  ///< sum b max(v, center)
  float weight_around; ///< sum w max(v, center)
  float largest;       ///< |v|
};

/** Of a pair, behind the second pass. */
struct PairEnd {
  RowNumbers row;
  TailErrors tail;
  double mean, worst; ///< sum of w omega; largest error of a weight, in the exponent
};

struct DevicePool {
  const unsigned char *k, *v;
  int64_t k_stride_token, k_stride_head, v_stride_token, v_stride_head;
};

/** Something that is not certainly inside: its row is decided on the host. */
struct OpenRow {
  int32_t row, head;
};

struct Totals {
  unsigned long long elements, claimed, no_claim, open_rows, one_pass;
  unsigned long long worst, worst_lse; ///< bits of the largest ratios, as doubles
};

struct Call {
  DevicePool pools[kMaxPools];
  const KeyRun *runs;
  const int64_t *first_run;
  const unsigned char *q, *o;
  const float *lse; ///< null: none is written
  const int64_t *q_at, *o_at, *lse_at;
  int64_t q_stride_head, o_stride_head, lse_stride_head;
  const int32_t *begin, *end, *behind; ///< [rows]; behind null: 0
  Shard shard;
  const HeadInput *heads;
  const RowShape *shapes; ///< [rows, 2]: without and with a sink that counts
  ErrorModel model;
  RowFacts facts; ///< what all rows share
  assay_dtype q_dtype, kv_dtype, o_dtype;
  int32_t empty_lse;
  int32_t head_dim, dims, num_heads, num_kv_heads;
  float sm_scale;
  int32_t aligned;   ///< K and V may be read 16 bytes at a time
  int32_t subnormal; ///< P may be subnormal in its format

  // Of one launch.
  const ListWork *lists;
  int32_t num_lists;
  const int32_t *row_ids;
  int32_t plain;                    ///< the plain pass takes the call
  PlainSums *plain_sums;            ///< [units, pairs]
  PlainComponent *plain_components; ///< [units, pairs, dims]
  bool *redo;         ///< [rows of the launch, heads] left by the plain pass; null: all are
  bool *plain_units;  ///< [units] nothing in its keys is special
  FirstSums *first;   ///< [units, pairs]
  SecondSums *second; ///< likewise
  double *value;      ///< [units, pairs, dims]: sum w v
  ComponentSums *components;
  int32_t num_pairs;
  PairState *pairs; ///< [rows of the launch, heads]
  PairEnd *ends;    ///< likewise
  double *center;   ///< [rows of the launch, heads, dims]: the exact output before its scale
  Totals *totals;
  OpenRow *open;
  int32_t max_open;
  BulkElement *elements; ///< [rows, heads, dims + 1]; null: nobody asks
};

} // namespace assay::oracle::device
