// SPDX-License-Identifier: Apache-2.0
// Internal: a (row, head) pair of a call before its keys are looked at, and where those lie. One
// text for the host and for a GPU.
#pragma once

#include "oracle/bounds/key_formulas.h"
#include "oracle/device/call.h"
#include "oracle/device/elements.h"

namespace assay::oracle::device {

ORACLE_HOST_DEVICE inline bool has_sink(const Call &call, int head) {
  return call.facts.features.sinks && call.heads[head].sink > -HUGE_VALF;
}

/** The numbers of a row that sees `keys` keys. False: nothing is claimed. */
ORACLE_HOST_DEVICE inline bool start_numbers(const Call &call, int row_id, int head_id, int keys,
                                             double query_max, RowNumbers &row) {
  const bool sink = has_sink(call, head_id);
  row = RowNumbers{};
  row.model = call.model;
  row.shape = call.shapes[2 * row_id + (sink ? 1 : 0)];
  row.facts = call.facts;
  const HeadInput &head = call.heads[head_id];
  RowFeatures &features = row.facts.features;
  features.k_scale = head.k_scale;
  features.v_scale = head.v_scale;
  features.slope = head.slope;
  features.sink = head.sink;
  if (call.q_scale != nullptr)
    features.q_scale = call.q_scale[int64_t{row_id} * call.num_heads + head_id];
  row.facts.keys = keys + (sink ? 1 : 0);
  return scale_query(row, call.sm_scale, call.q_dtype == ASSAY_BF16, query_max);
}

/** The run of key `position` among runs [low, high]. */
ORACLE_HOST_DEVICE inline const KeyRun &run_among(const KeyRun *runs, int64_t low, int64_t high,
                                                  int position) {
  while (low < high) {
    const int64_t middle = (low + high) / 2;
    if (position < runs[middle].position + runs[middle].count)
      high = middle;
    else
      low = middle + 1;
  }
  return runs[low];
}

/** Where the elements of a key or a value lie, and the scales of their blocks. */
struct ElementPlace {
  const unsigned char *row = nullptr; ///< null: there is no such key
  const float *scales = nullptr;      ///< null: there are none
  int block = 1;                      ///< elements of a scale

  ORACLE_HOST_DEVICE float element(assay_dtype dtype, int i) const {
    const float x = load_element(dtype, row, i);
    return scales == nullptr ? x : x * scales[i / block];
  }
};

/** Where the key at `position`, which lies in `run`, has its K or V. */
ORACLE_HOST_DEVICE inline ElementPlace place_of(const Call &call, const KeyRun &run, int kv_head,
                                                int position, bool value) {
  const DevicePool &pool = call.pools[run.pool];
  const int64_t slot = position - run.position, bytes = bytes_of(call.kv_dtype);
  const int64_t at = value ? run.v_at + slot * pool.v_stride_token + kv_head * pool.v_stride_head
                           : run.k_at + slot * pool.k_stride_token + kv_head * pool.k_stride_head;
  ElementPlace place{(value ? pool.v : pool.k) + at * bytes};
  const ScaleArray &scales = value ? call.v_scales : call.k_scales;
  if (scales.blocks == 0) return place;
  const int64_t key = (value ? run.v_scale_at : run.k_scale_at) + slot;
  place.scales = scales.data + (key * call.num_kv_heads + kv_head) * scales.blocks;
  place.block = (value ? call.dims : call.head_dim) / scales.blocks;
  return place;
}

/** |got - mid| / bound where it is certainly inside; infinity where that is for the host to say. */
ORACLE_HOST_DEVICE inline double ratio_inside(float got, const Enclosure &exact, double bound) {
  const double value = static_cast<double>(got);
  if (!(fabs(value) < HUGE_VAL) || !(fabs(bound) < HUGE_VAL)) return HUGE_VAL;
  const double distance = fabs(value - exact.mid);
  const double slack = exact.rad + 0x1p-50 * (fabs(exact.mid) + fabs(value) + bound);
  return distance + slack <= bound ? distance / bound : HUGE_VAL;
}

} // namespace assay::oracle::device
