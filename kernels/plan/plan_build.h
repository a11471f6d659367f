// SPDX-License-Identifier: Apache-2.0
// Builds a plan from line_indptr. Every element of an array has a function of its own: the device
// planner calls them in parallel and the host planner in loops, with identical results. The
// templates take the loader of the side that runs them: on the device a checked global load.
#pragma once

#include "kernels/plan/split_plan.h"

namespace assay {

/// What a plan is built from. A balanced plan gives every request an index on the line: first those
/// with keys, in their own order, then those without keys, in reverse order.
struct PlanInput {
  SplitPlanShape shape;
  const int32_t *seq_lens;    // [batch]
  const int32_t *line_indptr; // [batch + 1] where the request of each index begins; balanced only
  const int32_t *order;       // [batch] the request of each index; balanced only
  /// [batch] How many keys of a request a prefix tree holds, from the first on: a multiple of
  /// kStartKeys. Null: no keys. Such a plan is balanced and has no span.
  const int32_t *covered;
};

/// The first key that the plan gives to a worker, of a request of `len` keys.
template <class Load>
ASSAY_HOST_DEVICE int32_t first_dealt(const PlanInput &in, int32_t request, int32_t len,
                                      Load load) {
  return in.covered != nullptr ? load(in.covered + request) : first_planned(len, in.shape.span);
}

/// Tiles of a request that the plan gives to workers.
template <class Load>
ASSAY_HOST_DEVICE int32_t dealt_tiles(const PlanInput &in, int32_t request, Load load) {
  const int32_t len = load(in.seq_lens + request);
  return tiles_of(len - first_dealt(in, request, len, load), in.shape.tile);
}

/// The index of a request on the line. `before` requests in front of it have keys.
ASSAY_HOST_DEVICE int32_t line_index_of(const SplitPlanShape &s, int32_t request, int32_t before,
                                        bool has_keys) {
  return has_keys ? before : s.batch - 1 - (request - before);
}

template <class Load>
ASSAY_HOST_DEVICE LineSegment line_segment(const PlanInput &in, int64_t index, Load load) {
  LineSegment p;
  p.request = load(in.order + index);
  p.len = load(in.seq_lens + p.request);
  p.first = first_dealt(in, p.request, p.len, load);
  p.tiles = tiles_of(p.len - p.first, in.shape.tile);
  p.begin = load(in.line_indptr + index);
  p.end = load(in.line_indptr + index + 1);
  if (p.end > p.begin + p.tiles) p.end = p.begin + p.tiles; // behind it, a boundary
  return p;
}

template <class Load>
ASSAY_HOST_DEVICE WorkLine work_line(const PlanInput &in, Load load) {
  return WorkLine::make(in.shape, load(in.line_indptr + in.shape.batch));
}

/// Split 0 of the request of an index of a balanced plan.
template <class Load>
ASSAY_HOST_DEVICE WorkItem request_item(const PlanInput &in, int64_t index, Load load) {
  const WorkLine line = work_line(in, load);
  const LineSegment p = line_segment(in, index, load);
  return balanced_item(in.shape, line, p, p.tiles == 0 ? 0 : line.worker_of(p.begin));
}

/// The index of the first request that begins at or behind the begin of a worker's range. Of a
/// worker without a range it is the index of the first request without keys.
template <class Load>
ASSAY_HOST_DEVICE int32_t first_line_index(const PlanInput &in, const WorkLine &line,
                                           int64_t worker, Load load) {
  const int64_t x = worker < line.active ? line.begin(worker) : line.total;
  int32_t low = 0, high = in.shape.batch;
  while (low < high) {
    const int32_t mid = low + (high - low) / 2;
    if (load(in.line_indptr + mid) >= x)
      high = mid;
    else
      low = mid + 1;
  }
  return low;
}

template <class Load>
ASSAY_HOST_DEVICE WorkerItems worker_items(const PlanInput &in, int64_t worker, Load load) {
  const SplitPlanShape &s = in.shape;
  WorkerItems items{};
  if (s.splits > 0) {
    items.head = fixed_item(s, worker, load(in.seq_lens + worker / s.splits));
    return items;
  }
  const WorkLine line = work_line(in, load);
  items.begin = first_line_index(in, line, worker, load);
  items.end = first_line_index(in, line, worker + 1, load);
  if (items.begin < items.end) items.first = request_item(in, items.begin, load);
  // The request before the first one that starts here is the head, if it reaches into the range.
  if (worker < line.active && items.begin > 0) {
    const LineSegment p = line_segment(in, items.begin - 1, load);
    if (p.end > line.begin(worker)) items.head = balanced_item(s, line, p, worker);
  }
  const int64_t first_empty = first_line_index(in, line, s.workers, load);
  const int64_t empty = s.batch - first_empty;
  items.empty_begin = static_cast<int32_t>(first_empty + worker * empty / s.workers);
  items.empty_end = static_cast<int32_t>(first_empty + (worker + 1) * empty / s.workers);
  return items;
}

} // namespace assay
