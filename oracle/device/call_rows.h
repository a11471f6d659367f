// SPDX-License-Identifier: Apache-2.0
// Internal: a (row, head) pair of a call, before its keys are looked at. One text for the host and
// for a GPU.
#pragma once

#include "oracle/bounds/key_formulas.h"
#include "oracle/device/bulk_call.h"

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
  row.facts.features.k_scale = head.k_scale;
  row.facts.features.v_scale = head.v_scale;
  row.facts.features.slope = head.slope;
  row.facts.features.sink = head.sink;
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

/** |got - mid| / bound where it is certainly inside; infinity where that is for the host to say. */
ORACLE_HOST_DEVICE inline double ratio_inside(float got, const Enclosure &exact, double bound) {
  const double value = static_cast<double>(got);
  if (!(fabs(value) < HUGE_VAL) || !(fabs(bound) < HUGE_VAL)) return HUGE_VAL;
  const double distance = fabs(value - exact.mid);
  const double slack = exact.rad + 0x1p-50 * (fabs(exact.mid) + fabs(value) + bound);
  return distance + slack <= bound ? distance / bound : HUGE_VAL;
}

} // namespace assay::oracle::device
