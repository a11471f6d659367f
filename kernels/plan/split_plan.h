// SPDX-License-Identifier: Apache-2.0
// SplitPlan: who computes which keys. Integer functions, the same on host and device.
//
// The work of a decode step is a line of key tiles: request by request, within a request one unit
// after the other (a unit is one kv head and row tile, one block's worth of query rows), within a
// unit its tiles in order. A segment is the stretch of one (request, unit).
//
//  - Balanced: the line is cut into equal contiguous ranges, one per worker. A worker holds at most
//    one segment that began before its range (its head) and one that continues after it, so two
//    partial slots per worker suffice whatever the batch and the lengths are.
//  - Fixed: every segment is cut into `splits` equal key ranges, one worker each (a range may be
//    empty). Independent of the rest of the batch.
//
// All ranges are half-open. A segment held by one worker is written directly; the splits of any
// other go through partial slots, and whoever finishes last merges them in split order. A segment
// without keys is written (0, -inf) by the worker at its place in the line.
#pragma once

#include <cstdint>

#if defined(__CUDACC__)
#define ASSAY_PLAN_FUNCTION __host__ __device__ inline
#else
#define ASSAY_PLAN_FUNCTION inline
#endif

namespace assay {

/// Shape of a plan: known on the host without reading lengths.
struct SplitPlanShape {
  int32_t batch = 0;
  int32_t units = 0;   // per request: kv heads * row tiles per group
  int32_t splits = 0;  // > 0: fixed plan
  int32_t workers = 0; // balanced: blocks to spread over; fixed: batch * units * splits
  int32_t tile = 0;    // keys per tile of the balanced line

  ASSAY_PLAN_FUNCTION int64_t segments() const { return int64_t{batch} * units; }
  /// Slots between the second and the third split of a segment, and so on.
  ASSAY_PLAN_FUNCTION int32_t slot_stride() const { return splits > 0 ? 1 : 2; }
};

/// One contiguous key range of one segment. 32 bytes: two vector loads.
struct alignas(16) WorkItem {
  int32_t request, unit;
  int32_t kv_begin, kv_end;
  int32_t split;      // index within the segment
  int32_t num_splits; // 1: written directly; 0: no item
  int32_t first_slot; // partial slot of split 0
  int32_t next_slot;  // of split 1; split i is i - 1 strides further

  ASSAY_PLAN_FUNCTION int64_t slot(int i, int32_t stride) const {
    return i == 0 ? first_slot : next_slot + int64_t{i - 1} * stride;
  }
};

/// A worker's items: its head, then segments [segment_begin, segment_end) that start in its range,
/// the first of them repeated here to save a dependent load.
struct alignas(16) WorkerItems {
  WorkItem head;  // num_splits == 0: none
  WorkItem first; // copy of segment_items[segment_begin]
  int32_t segment_begin, segment_end;
  int32_t reserved[2];
};

/// Device view of a plan buffer.
struct SplitPlan {
  SplitPlanShape shape;
  const WorkerItems *workers;    // [workers]
  const WorkItem *segment_items; // [segments] the split 0 of each; balanced plans only
  uint32_t *counters;            // [segments] splits finished so far; 0 between calls
};

/// Byte offsets inside a plan buffer, and its size.
struct PlanLayout {
  int64_t workers, segment_items, counters, tile_indptr, bytes;
};

ASSAY_PLAN_FUNCTION PlanLayout plan_layout(const SplitPlanShape &s) {
  PlanLayout l;
  l.workers = 0;
  l.segment_items = int64_t{s.workers} * static_cast<int64_t>(sizeof(WorkerItems));
  const int64_t items = s.splits > 0 ? 0 : s.segments();
  l.counters = l.segment_items + items * static_cast<int64_t>(sizeof(WorkItem));
  l.tile_indptr = l.counters + s.segments() * 4;
  l.bytes = l.tile_indptr + (int64_t{s.batch} + 1) * 4;
  return l;
}

/// Partial slots of a plan, for sizing the workspace.
ASSAY_PLAN_FUNCTION int64_t plan_slots(const SplitPlanShape &s) {
  if (s.splits > 0) return s.splits == 1 ? 0 : int64_t{s.workers};
  return 2 * int64_t{s.workers};
}

ASSAY_PLAN_FUNCTION int32_t tiles_of(int32_t len, int32_t tile) { return (len + tile - 1) / tile; }

/// First key of split `split` of `splits` over `len` keys; split_begin(len, splits, splits) == len.
ASSAY_PLAN_FUNCTION int32_t split_begin(int32_t len, int32_t splits, int32_t split) {
  return static_cast<int32_t>(int64_t{len} * split / splits);
}

/// The balanced line once its length is known.
struct WorkLine {
  int64_t total;  // tiles
  int64_t active; // workers that hold at least one tile: between the first and the last worker of a
                  // segment none is idle

  ASSAY_PLAN_FUNCTION static WorkLine make(const SplitPlanShape &s, int64_t total) {
    return {total, s.workers < total ? s.workers : total};
  }
  /// First tile of worker w's range; begin(active) == total.
  ASSAY_PLAN_FUNCTION int64_t begin(int64_t w) const { return w * total / active; }
  /// The worker whose range holds `tile`: the largest w with begin(w) <= tile.
  ASSAY_PLAN_FUNCTION int64_t worker_of(int64_t tile) const {
    return ((tile + 1) * active - 1) / total;
  }
};

/// Where a segment lies on the line, and its lengths.
struct SegmentPlace {
  int32_t request, unit, len;
  int64_t begin, tiles;
};

/// Item `split_of_worker(w)` of a balanced segment: the part of it that worker w holds.
ASSAY_PLAN_FUNCTION WorkItem balanced_item(const SplitPlanShape &s, const WorkLine &line,
                                           const SegmentPlace &place, int64_t worker) {
  WorkItem item{place.request, place.unit, 0, 0, 0, 1, 0, 0};
  if (place.tiles == 0) return item;
  const int64_t first = line.worker_of(place.begin);
  const int64_t last = line.worker_of(place.begin + place.tiles - 1);
  const int64_t end = place.begin + place.tiles;
  const int64_t x0 = line.begin(worker) > place.begin ? line.begin(worker) : place.begin;
  const int64_t x1 = line.begin(worker + 1) < end ? line.begin(worker + 1) : end;
  item.kv_begin = static_cast<int32_t>((x0 - place.begin) * s.tile);
  item.kv_end = x1 == end ? place.len : static_cast<int32_t>((x1 - place.begin) * s.tile);
  item.split = static_cast<int32_t>(worker - first);
  item.num_splits = static_cast<int32_t>(last - first + 1);
  // A worker's tail (the segment that continues after it) and its head use different slots.
  item.first_slot = static_cast<int32_t>(2 * first + 1);
  item.next_slot = static_cast<int32_t>(2 * (first + 1));
  return item;
}

/// The item of worker w of a fixed plan over a request of `len` keys.
ASSAY_PLAN_FUNCTION WorkItem fixed_item(const SplitPlanShape &s, int64_t worker, int32_t len) {
  const int64_t segment = worker / s.splits;
  const int32_t split = static_cast<int32_t>(worker % s.splits);
  WorkItem item;
  item.request = static_cast<int32_t>(segment / s.units);
  item.unit = static_cast<int32_t>(segment % s.units);
  item.kv_begin = split_begin(len, s.splits, split);
  item.kv_end = split_begin(len, s.splits, split + 1);
  item.split = split;
  // Without keys, split 0 alone writes the empty row.
  item.num_splits = len > 0 ? s.splits : split == 0 ? 1 : 0;
  item.first_slot = static_cast<int32_t>(segment * s.splits);
  item.next_slot = item.first_slot + 1;
  return item;
}

/// Worker that writes segment s when no request has keys.
ASSAY_PLAN_FUNCTION int64_t empty_line_worker(const SplitPlanShape &s, int64_t segment) {
  return segment * s.workers / s.segments();
}

} // namespace assay
