// SPDX-License-Identifier: Apache-2.0
// SplitPlan: who computes which keys. Pure functions, the same on host and device.
//
// The work of a decode step is a line of key tiles: request by request, within a request one unit
// after the other (a unit is one kv head and row tile, i.e. one block's worth of query rows),
// within a unit its tiles in order. A segment is the stretch of one (request, unit).
//
//  - Balanced: the line is cut into `workers` equal contiguous ranges. A worker holds at most one
//    segment that began before it and one that continues after it, so two partial slots per worker
//    suffice whatever the batch and the lengths are.
//  - Fixed: every segment is cut into `splits` equal key ranges, one worker each (a worker whose
//    range is empty contributes nothing). Independent of the rest of the batch.
//
// All ranges are half-open. Only a segment held whole by one worker is written directly; the others
// go through partial slots and are merged in split order.
#pragma once

#include <cstdint>

// The templates take the loader of the side that runs them: on the device a checked global load.
#if defined(__CUDACC__)
#define ASSAY_PLAN_FUNCTION __host__ __device__ inline
#define ASSAY_PLAN_TEMPLATE __device__ inline
#else
#define ASSAY_PLAN_FUNCTION inline
#define ASSAY_PLAN_TEMPLATE inline
#endif

namespace assay {

/// Shape of a plan: known on the host without reading lengths.
struct SplitPlanShape {
  int32_t batch = 0;
  int32_t units = 0;   // per request: kv heads * row tiles per group
  int32_t splits = 0;  // > 0: fixed plan
  int32_t workers = 0; // balanced: blocks to spread over; fixed: batch * units * splits
  int32_t tile = 0;    // keys per tile of the balanced line
};

/// Device view of a plan. For a fixed plan the arrays are unused (null).
struct SplitPlan {
  SplitPlanShape shape;
  const int32_t *seq_lens;       // [batch]
  const int32_t *tile_indptr;    // [batch + 1] prefix sum of ceil(seq_len / tile)
  const int32_t *worker_request; // [workers] request where a worker's range starts
};

/// One contiguous key range of one segment, as one worker sees it.
struct WorkItem {
  int32_t request, unit;
  int32_t kv_begin, kv_end;
  int64_t slot; // partial slot
  bool whole;   // the item is the complete segment
};

/// The partial slots of one segment, in split order: slot(i) for i in [0, count).
struct SegmentSlots {
  int64_t first_slot; // slot of the first item
  int64_t next_slot;  // slot of the second item
  int32_t stride;     // from there on
  int32_t count;      // 0: no keys; 1: written directly, no partial
  ASSAY_PLAN_FUNCTION int64_t slot(int i) const {
    return i == 0 ? first_slot : next_slot + int64_t{i - 1} * stride;
  }
};

/// Partial slots of a plan, for sizing the workspace.
ASSAY_PLAN_FUNCTION int64_t plan_slots(const SplitPlanShape &s) {
  if (s.splits > 0) return s.splits == 1 ? 0 : int64_t{s.workers};
  return 2 * int64_t{s.workers};
}

/// int32 entries of a plan buffer: tile_indptr, then worker_request.
ASSAY_PLAN_FUNCTION int64_t plan_entries(const SplitPlanShape &s) {
  return s.splits > 0 ? 0 : int64_t{s.batch} + 1 + s.workers;
}

ASSAY_PLAN_FUNCTION int32_t tiles_of(int32_t len, int32_t tile) { return (len + tile - 1) / tile; }

/// Keys [begin, end) of split `split` of `splits` over `len` keys.
ASSAY_PLAN_FUNCTION int32_t split_begin(int32_t len, int32_t splits, int32_t split) {
  return static_cast<int32_t>(int64_t{len} * split / splits);
}

/// Workers that hold at least one tile: with fewer tiles than workers the rest stay idle, so that
/// between the first and the last worker of a segment none is empty.
ASSAY_PLAN_FUNCTION int64_t active_workers(const SplitPlanShape &s, int64_t total_tiles) {
  return s.workers < total_tiles ? s.workers : total_tiles;
}

/// First tile of worker w's range; worker_begin(active) == total.
ASSAY_PLAN_FUNCTION int64_t worker_begin(int64_t w, int64_t active, int64_t total) {
  return w * total / active;
}

/// The worker whose range holds `tile`: the largest w with worker_begin(w) <= tile.
ASSAY_PLAN_FUNCTION int64_t worker_of(int64_t tile, int64_t active, int64_t total) {
  return ((tile + 1) * active - 1) / total;
}

/// Request that holds tile `x` of the line: the largest r with tile_indptr[r] * units <= x.
template <class Load>
ASSAY_PLAN_TEMPLATE int32_t request_of(const int32_t *tile_indptr, int32_t batch, int32_t units,
                                       int64_t x, Load load) {
  int32_t low = 0, high = batch - 1;
  while (low < high) {
    const int32_t mid = low + (high - low + 1) / 2;
    if (int64_t{load(tile_indptr + mid)} * units <= x)
      low = mid;
    else
      high = mid - 1;
  }
  return low;
}

/// Iterates over the items of worker w: `for (ItemCursor c(plan, w); c.next(item);)`. `Load` reads
/// an int32 (a checked global load on the device, a plain one on the host).
template <class Load>
class ItemCursor {
public:
  ASSAY_PLAN_TEMPLATE ItemCursor(const SplitPlan &plan, int64_t worker, Load load)
      : plan_(plan), load_(load), worker_(worker) {
    const SplitPlanShape &s = plan.shape;
    if (s.splits > 0) return;
    const int64_t total = int64_t{load(plan.tile_indptr + s.batch)} * s.units;
    const int64_t active = active_workers(s, total);
    if (worker >= active) return;
    x_ = worker_begin(worker, active, total);
    end_ = worker_begin(worker + 1, active, total);
    request_ = load(plan.worker_request + worker);
  }

  ASSAY_PLAN_TEMPLATE bool next(WorkItem &item) {
    return plan_.shape.splits > 0 ? next_fixed(item) : next_balanced(item);
  }

private:
  ASSAY_PLAN_TEMPLATE bool next_fixed(WorkItem &item) {
    const SplitPlanShape &s = plan_.shape;
    if (x_ != 0) return false;
    x_ = 1;
    const int32_t split = static_cast<int32_t>(worker_ % s.splits);
    const int64_t segment = worker_ / s.splits;
    item.request = static_cast<int32_t>(segment / s.units);
    item.unit = static_cast<int32_t>(segment % s.units);
    const int32_t len = load_(plan_.seq_lens + item.request);
    item.kv_begin = split_begin(len, s.splits, split);
    item.kv_end = split_begin(len, s.splits, split + 1);
    item.slot = worker_;
    item.whole = s.splits == 1;
    return true;
  }

  ASSAY_PLAN_TEMPLATE bool next_balanced(WorkItem &item) {
    if (x_ >= end_) return false;
    const SplitPlanShape &s = plan_.shape;
    int64_t base = int64_t{load_(plan_.tile_indptr + request_)} * s.units;
    int64_t after = int64_t{load_(plan_.tile_indptr + request_ + 1)} * s.units;
    while (after <= x_) { // also skips requests without keys
      ++request_;
      base = after;
      after = int64_t{load_(plan_.tile_indptr + request_ + 1)} * s.units;
    }
    const int64_t tiles = (after - base) / s.units;
    item.request = request_;
    item.unit = static_cast<int32_t>((x_ - base) / tiles);
    const int64_t first = (x_ - base) % tiles;
    const int64_t last = first + (end_ - x_) < tiles ? first + (end_ - x_) : tiles;
    const int32_t len = load_(plan_.seq_lens + request_);
    item.kv_begin = static_cast<int32_t>(first * s.tile);
    item.kv_end = last == tiles ? len : static_cast<int32_t>(last * s.tile);
    item.whole = first == 0 && last == tiles;
    // A worker's tail (a segment it begins) and head (one begun earlier) use different slots.
    item.slot = 2 * worker_ + (first == 0 ? 1 : 0);
    x_ += last - first;
    return true;
  }

  const SplitPlan &plan_;
  Load load_;
  int64_t worker_;
  int64_t x_ = 0, end_ = 0;
  int32_t request_ = 0;
};

/// Partial slots of segment (request, unit).
template <class Load>
ASSAY_PLAN_TEMPLATE SegmentSlots segment_slots(const SplitPlan &plan, int32_t request, int32_t unit,
                                               Load load) {
  const SplitPlanShape &s = plan.shape;
  if (s.splits > 0) {
    const int64_t first = (int64_t{request} * s.units + unit) * s.splits;
    const bool empty = load(plan.seq_lens + request) == 0;
    return {first, first + 1, 1, empty ? 0 : s.splits};
  }
  const int64_t before = load(plan.tile_indptr + request);
  const int64_t tiles = load(plan.tile_indptr + request + 1) - before;
  if (tiles == 0) return {0, 0, 0, 0};
  const int64_t total = int64_t{load(plan.tile_indptr + s.batch)} * s.units;
  const int64_t active = active_workers(s, total);
  const int64_t begin = before * s.units + unit * tiles;
  const int64_t first = worker_of(begin, active, total);
  const int64_t last = worker_of(begin + tiles - 1, active, total);
  return {2 * first + 1, 2 * (first + 1), 2, static_cast<int32_t>(last - first + 1)};
}

} // namespace assay
