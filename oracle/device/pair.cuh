// SPDX-License-Identifier: Apache-2.0
// Internal: what a block works on: up to eight (row, head) pairs of one list and kv head, and a
// chunk of its keys.
#pragma once

#include "oracle/device/call_rows.h"

namespace assay::oracle::device {

struct Unit {
  int64_t id;
  ListWork work;
  int kv_head, begin, end; ///< keys
  int first_pair, pairs;   ///< of the list's pairs of that kv head
};

__device__ inline Unit unit_of(const Call &call, int64_t id, int pairs_of_unit) {
  int low = 0, high = call.num_lists - 1;
  while (low < high) {
    const int middle = (low + high + 1) / 2;
    if (call.lists[middle].first_unit <= id)
      low = middle;
    else
      high = middle - 1;
  }
  Unit unit{id, call.lists[low], 0, 0, 0, 0, 0};
  const ListWork &work = unit.work;
  const auto at = static_cast<int>(id - work.first_unit);
  const int block = at % work.blocks, rest = at / work.blocks;
  unit.kv_head = rest / work.chunks;
  unit.begin = work.begin + (rest % work.chunks) * work.chunk;
  unit.end = min(unit.begin + work.chunk, work.end);
  unit.first_pair = block * pairs_of_unit;
  unit.pairs =
      min(work.rows * (call.num_heads / call.num_kv_heads) - unit.first_pair, pairs_of_unit);
  return unit;
}

/** A pair of the unit: its row and head, which keys it sees. */
struct Pair {
  int row, head, begin, end, behind;
  int64_t number; ///< of the launch's pairs
  bool subnormal_query, finite;
  double magnitude_scale; ///< of the magnitudes that scores are taken with
};

__device__ inline Pair pair_of(const Call &call, const ListWork &work, int kv_head, int index) {
  const int group = call.num_heads / call.num_kv_heads;
  const int local = work.first_row + index / group;
  Pair pair{};
  pair.row = call.row_ids[local];
  pair.head = kv_head * group + index % group;
  pair.begin = call.begin[pair.row];
  pair.end = call.end[pair.row];
  pair.behind = call.behind == nullptr ? 0 : call.behind[pair.row];
  pair.number = int64_t{local} * call.num_heads + pair.head;
  pair.finite = true;
  return pair;
}

/** The plain pass has not decided the pair. */
__device__ inline bool left(const Call &call, const Pair &pair) {
  return call.redo == nullptr || call.redo[pair.number];
}
__device__ inline bool any_left(const Call &call, const Unit &unit) {
  bool any = call.redo == nullptr;
  for (int index = 0; index < unit.pairs && !any; ++index)
    any = left(call, pair_of(call, unit.work, unit.kv_head, unit.first_pair + index));
  return any;
}

/** The numbers of a pair before its keys are known. False: nothing is claimed. */
__device__ inline bool start_numbers(const Call &call, const Pair &pair, double query_max,
                                     RowNumbers &row) {
  return start_numbers(call, pair.row, pair.head, pair.end - pair.begin, query_max, row);
}

__device__ inline const unsigned char *query_of(const Call &call, const Pair &pair) {
  return call.q + 2 * (call.q_at[pair.row] + pair.head * call.q_stride_head);
}

__device__ inline uint32_t bits16(const unsigned char *row, int i) {
  return row[2 * i] | static_cast<uint32_t>(row[2 * i + 1]) << 8;
}

/** How fast eta of bound_key grows with a key's own error: the rest of it is the row's, but for the
    key's distance from the largest. */
__device__ inline double score_slope(const RowNumbers &row) {
  const double unit = row.model.conversion + kU;
  return (1.0 + (row.scale_error + kU + unit + row.shape.stages * unit) * kSlack) * kSlack;
}

/** ln(1 + omega) of a key is g s + h (x_max - x) + what the row's keys share: bound_key's, taken
    apart. In units of log2, before the slack. */
struct PlainOmega {
  double by_score, by_distance;
  __device__ explicit PlainOmega(const RowNumbers &row) {
    const double unit = kU + row.model.conversion;
    by_distance = (row.scale_error + kU + unit + row.shape.stages * unit) * kSlack;
    by_score = 1.0 + by_distance;
  }
  /// ln of it, but for the factors of the exponentials.
  __device__ double shared(const RowNumbers &row, const OmegaRow &common) const {
    double sum = by_distance * row.x_error_max + common.shared;
    if (row.shape.stages > 0) sum += row.shape.stages * combine_exponent_error(row, 0.0);
    return kLn2 * kSlack * sum;
  }
};

} // namespace assay::oracle::device
