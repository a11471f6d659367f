// SPDX-License-Identifier: Apache-2.0
// Building a plan from line_indptr: one function per array element, so that the device planner runs
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
  const int32_t *line_indptr; // [batch + 1] where requests begin on the line; balanced only
};

template <class Load>
ASSAY_PLAN_TEMPLATE RequestPlace request_place(const PlanInput &in, int64_t request, Load load) {
  RequestPlace p;
  p.request = static_cast<int32_t>(request);
  p.len = load(in.seq_lens + request);
  p.first = first_planned(p.len, in.shape.span);
  p.tiles = planned_tiles(in.shape, p.len);
  p.begin = load(in.line_indptr + request);
  p.end = load(in.line_indptr + request + 1);
  if (p.end > p.begin + p.tiles) p.end = p.begin + p.tiles; // behind it, a boundary
  return p;
}

template <class Load>
ASSAY_PLAN_TEMPLATE WorkLine work_line(const PlanInput &in, Load load) {
  return WorkLine::make(in.shape, load(in.line_indptr + in.shape.batch));
}

/// Split 0 of a request of a balanced plan.
template <class Load>
ASSAY_PLAN_TEMPLATE WorkItem request_item(const PlanInput &in, int64_t request, Load load) {
  const WorkLine line = work_line(in, load);
  const RequestPlace p = request_place(in, request, load);
  return balanced_item(in.shape, line, p, p.tiles == 0 ? 0 : line.worker_of(p.begin));
}

/// First request that starts in the range of worker w or of a later one; batch when there is none.
/// Requests without keys start where the next one does, those at the end of the line in the last
/// worker's range; when no request has keys they are dealt out evenly.
template <class Load>
ASSAY_PLAN_TEMPLATE int64_t first_request(const PlanInput &in, const WorkLine &line, int64_t worker,
                                          Load load) {
  const SplitPlanShape &s = in.shape;
  if (line.total == 0) return worker * s.batch / s.workers;
  if (worker >= line.active) return s.batch;
  const int64_t x = line.begin(worker);
  int32_t low = 0, high = s.batch;
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
ASSAY_PLAN_TEMPLATE WorkerItems worker_items(const PlanInput &in, int64_t worker, Load load) {
  WorkerItems items{};
  if (in.shape.splits > 0) {
    items.head = fixed_item(in.shape, worker, load(in.seq_lens + worker / in.shape.splits));
    return items;
  }
  const WorkLine line = work_line(in, load);
  const int64_t begin = first_request(in, line, worker, load);
  const int64_t end = first_request(in, line, worker + 1, load);
  items.request_begin = static_cast<int32_t>(begin);
  items.request_end = static_cast<int32_t>(end);
  if (begin < end) items.first = request_item(in, begin, load);
  // The head: the request before the first one that starts here, if it reaches into the range.
  if (worker < line.active && begin > 0) {
    const RequestPlace p = request_place(in, begin - 1, load);
    if (p.end > line.begin(worker)) items.head = balanced_item(in.shape, line, p, worker);
  }
  return items;
}

} // namespace assay
