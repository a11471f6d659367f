// SPDX-License-Identifier: Apache-2.0
// Building a plan from tile_indptr: one function per array element, so that the device planner runs
// them in parallel and the host planner in loops, with identical results.
#pragma once

#include "kernels/plan/split_plan.h"

// The templates take the loader of the side that runs them: on the device a checked global load.
#if defined(__CUDACC__)
#define ASSAY_PLAN_TEMPLATE __device__ inline
#else
#define ASSAY_PLAN_TEMPLATE inline
#endif

namespace assay {

/// What a plan is built from.
struct PlanInput {
  SplitPlanShape shape;
  const int32_t *seq_lens;    // [batch]
  const int32_t *tile_indptr; // [batch + 1] prefix sum of ceil(seq_len / tile); balanced only
};

template <class Load>
ASSAY_PLAN_TEMPLATE SegmentPlace segment_place(const PlanInput &in, int64_t segment, Load load) {
  SegmentPlace p;
  p.request = static_cast<int32_t>(segment / in.shape.units);
  p.unit = static_cast<int32_t>(segment % in.shape.units);
  p.len = load(in.seq_lens + p.request);
  const int64_t before = load(in.tile_indptr + p.request);
  p.tiles = load(in.tile_indptr + p.request + 1) - before;
  p.begin = before * in.shape.units + p.unit * p.tiles;
  return p;
}

template <class Load>
ASSAY_PLAN_TEMPLATE WorkLine work_line(const PlanInput &in, Load load) {
  return WorkLine::make(in.shape, int64_t{load(in.tile_indptr + in.shape.batch)} * in.shape.units);
}

/// The worker in whose range segment `segment` starts; a segment at the very end of the line (only
/// segments without keys are) belongs to the last one.
template <class Load>
ASSAY_PLAN_TEMPLATE int64_t starting_worker(const PlanInput &in, const WorkLine &line,
                                            int64_t segment, Load load) {
  if (line.total == 0) return empty_line_worker(in.shape, segment);
  const SegmentPlace p = segment_place(in, segment, load);
  return line.worker_of(p.begin < line.total ? p.begin : line.total - 1);
}

/// Split 0 of a segment of a balanced plan.
template <class Load>
ASSAY_PLAN_TEMPLATE WorkItem segment_item(const PlanInput &in, int64_t segment, Load load) {
  const WorkLine line = work_line(in, load);
  const SegmentPlace p = segment_place(in, segment, load);
  return balanced_item(in.shape, line, p, starting_worker(in, line, segment, load));
}

/// First segment whose starting_worker() is `worker` or later: segments() when there is none.
template <class Load>
ASSAY_PLAN_TEMPLATE int64_t first_segment(const PlanInput &in, const WorkLine &line, int64_t worker,
                                          Load load) {
  const SplitPlanShape &s = in.shape;
  if (line.total == 0) // smallest segment with empty_line_worker(segment) >= worker
    return (worker * s.segments() + s.workers - 1) / s.workers;
  if (worker >= line.active) return s.segments();
  const int64_t x = line.begin(worker);
  // Smallest request whose first segment starts at x or after ...
  int32_t low = 0, high = s.batch;
  while (low < high) {
    const int32_t mid = low + (high - low) / 2;
    if (int64_t{load(in.tile_indptr + mid)} * s.units >= x)
      high = mid;
    else
      low = mid + 1;
  }
  const int64_t found = int64_t{low} * s.units;
  if (low == 0) return found;
  // ... unless a later unit of the request before does.
  const int64_t before = int64_t{load(in.tile_indptr + low - 1)};
  const int64_t tiles = load(in.tile_indptr + low) - before;
  const int64_t unit = tiles == 0 ? s.units : (x - before * s.units + tiles - 1) / tiles;
  return unit < s.units ? found - s.units + unit : found;
}

template <class Load>
ASSAY_PLAN_TEMPLATE WorkerItems worker_items(const PlanInput &in, int64_t worker, Load load) {
  WorkerItems items{};
  if (in.shape.splits > 0) {
    const int64_t request = worker / in.shape.splits / in.shape.units;
    items.head = fixed_item(in.shape, worker, load(in.seq_lens + request));
    return items;
  }
  const WorkLine line = work_line(in, load);
  const int64_t begin = first_segment(in, line, worker, load);
  const int64_t end = first_segment(in, line, worker + 1, load);
  items.segment_begin = static_cast<int32_t>(begin);
  items.segment_end = static_cast<int32_t>(end);
  if (begin < end) items.first = segment_item(in, begin, load);
  // The head: the segment before the first one that starts here, if it reaches into the range.
  if (worker < line.active && begin > 0) {
    const SegmentPlace p = segment_place(in, begin - 1, load);
    if (p.begin + p.tiles > line.begin(worker))
      items.head = balanced_item(in.shape, line, p, worker);
  }
  return items;
}

} // namespace assay
