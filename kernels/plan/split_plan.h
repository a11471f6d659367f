// SPDX-License-Identifier: Apache-2.0
// SplitPlan: who computes which keys. Its functions compute with integers, and do the same on host
// and device.
//
// Picture the keys of a decode step as a line of tiles, one request behind the other. A plan cuts
// the line into ranges and gives each range to a worker. What a worker holds of one request is a
// split of that request. The plan is the same for every head tile, which is a kv head and up to 16
// of its query rows: what one block attends. So a worker is `head_tiles` blocks that walk the same
// keys at the same time. In NHD caches the heads of a token are neighbours in memory, and the reads
// of these blocks then fall on the same DRAM pages. (Ranges that run on from one head into the next
// read 5 % slower on an H200, for the same bytes.)
//
//  - Balanced: all ranges are equally long. A worker may start inside a request, with the head of
//    its range, and end inside another one. These two splits need partial slots, whatever the batch
//    and the lengths are. Between two requests the line has a boundary tile without keys: it stands
//    for the time in which a worker merges one request and fetches the queries of the next.
//  - Balanced, whole workers: every request gets workers of its own, so that no worker crosses a
//    boundary. A plan is so where the busiest worker then has little more than an equal share.
//  - Fixed: every request is cut into `splits` equal key ranges, one worker each. A range may be
//    empty. The cuts do not depend on the rest of the batch.
//
// All ranges are half-open. A request with one split is written directly. The splits of any other
// request go through partial slots, and the block that finishes last merges them in a fixed order.
// Requests without keys are not on the line: workers get equally many of them, and write each as
// (0, -inf).
#pragma once

#include "kernels/arch/host_device.h"

#include <cstdint>

namespace assay {

/// Shape of a plan: known on the host without reading lengths.
struct SplitPlanShape {
  int32_t batch = 0;
  int32_t head_tiles = 0; // blocks per worker: kv heads * head tiles per kv head
  int32_t splits = 0;     // > 0: fixed plan
  int32_t workers = 0;    // balanced: ranges to cut the line into; fixed: batch * splits
  int32_t tile = 0;       // keys per tile of the line: one warp tile for every warp of a block
  int32_t span = 0;       // only the last `span` keys of a request are read, 0: all

  /// Slots between the second and the third split of a request, and so on.
  ASSAY_HOST_DEVICE int32_t slot_stride() const { return splits > 0 ? 1 : 2; }
};

/// Where not all keys of a request are visible, a plan starts at a multiple of this, so that tiles
/// stay aligned to pages.
inline constexpr int kStartKeys = 64;

/// Boundary tiles between two requests. To cross a boundary takes a worker about as long as a tile:
/// 2.6 us against 1.8 us with 8 warps (b8 8k on an H200). bench/results/journal.md has figures
/// of 0, 2 and 3 boundary tiles.
inline constexpr int kBoundaryTiles = 1;

/// The busiest of whole workers may have so many tiles more than an equal share.
inline constexpr int kMaxExcessTiles = 2;

/// One contiguous key range of one request. It has 32 bytes, for two vector loads.
struct alignas(16) WorkItem {
  int32_t request;
  int32_t kv_begin, kv_end;
  int32_t split;      // index within the request
  int32_t num_splits; // splits of the request; 1: written directly, 0: no item
  int32_t first_slot; // partial slot of split 0
  int32_t next_slot;  // partial slot of split 1; that of split i is i - 1 strides further
  int32_t seq_len;    // length of the request

  /// The slot of split i. A slot holds one partial per head tile.
  ASSAY_HOST_DEVICE int32_t slot(int i, int32_t stride) const {
    return i == 0 ? first_slot : next_slot + (i - 1) * stride;
  }
};

/// The items of a worker, in the order of its work: the head of its range, if that begins inside a
/// request; the requests that start in its range; requests without keys.
struct alignas(16) WorkerItems {
  WorkItem head;                  // num_splits == 0: none
  WorkItem first;                 // a copy of request_items[begin], which saves a dependent load
  int32_t begin, end;             // indices in request_items
  int32_t empty_begin, empty_end; // range of requests without keys
};

/// Device view of a plan buffer.
struct SplitPlan {
  SplitPlanShape shape;
  const WorkerItems *workers;    // [workers]
  const WorkItem *request_items; // [batch] split 0 of each, as on the line; balanced plans only
  uint32_t *counters;            // [batch, head_tiles] splits finished so far; 0 between calls
};

/// Byte offsets inside a plan buffer, and its size.
struct PlanLayout {
  int64_t workers, request_items, counters, line_indptr, order, bytes;
};

ASSAY_HOST_DEVICE PlanLayout plan_layout(const SplitPlanShape &s) {
  PlanLayout l;
  l.workers = 0;
  l.request_items = int64_t{s.workers} * static_cast<int64_t>(sizeof(WorkerItems));
  const int64_t items = s.splits > 0 ? 0 : s.batch;
  l.counters = l.request_items + items * static_cast<int64_t>(sizeof(WorkItem));
  l.line_indptr = l.counters + int64_t{s.batch} * s.head_tiles * 4;
  l.order = l.line_indptr + (int64_t{s.batch} + 1) * 4;
  l.bytes = l.order + int64_t{s.batch} * 4;
  return l;
}

/// Partial slots of a plan, each for one partial per head tile. The workspace has so many.
ASSAY_HOST_DEVICE int64_t plan_slots(const SplitPlanShape &s) {
  if (s.splits > 0) return s.splits == 1 ? 0 : int64_t{s.workers};
  return 2 * int64_t{s.workers};
}

ASSAY_HOST_DEVICE int32_t tiles_of(int32_t len, int32_t tile) { return (len + tile - 1) / tile; }

/// First key that a request of `len` keys reads. Its last `span` keys are visible, or all (span 0).
ASSAY_HOST_DEVICE int32_t first_visible(int32_t len, int32_t span) {
  return span > 0 && len > span ? len - span : 0;
}

/// The key at which the tiles of a request start: at or before the first visible one.
ASSAY_HOST_DEVICE int32_t first_planned(int32_t len, int32_t span) {
  return first_visible(len, span) / kStartKeys * kStartKeys;
}

/// First key of split `split` of `splits` over `len` keys; split_begin(len, splits, splits) == len.
ASSAY_HOST_DEVICE int32_t split_begin(int32_t len, int32_t splits, int32_t split) {
  return static_cast<int32_t>(int64_t{len} * split / splits);
}

/// How many shares are tried for the busiest of whole workers: 16/16 to 31/16 of an equal share.
inline constexpr int kShares = 16;

/// Share i of a line of `total` tiles, times 16 * workers.
ASSAY_HOST_DEVICE int64_t share_of_line(int64_t total, int i) { return total * (16 + i); }

ASSAY_HOST_DEVICE bool may_have_whole_workers(const SplitPlanShape &s, int64_t total, int i) {
  return s.splits == 0 && s.batch <= s.workers && total > 0 &&
         total * i <= int64_t{16} * kMaxExcessTiles * s.workers;
}

/// Workers that a request of `tiles` needs when no worker may have more than the share.
ASSAY_HOST_DEVICE int32_t own_workers(const SplitPlanShape &s, int64_t share, int32_t tiles) {
  const int64_t workers = (int64_t{16} * s.workers * tiles + share - 1) / share;
  return workers < tiles ? static_cast<int32_t>(workers) : tiles;
}

/// The length of a request of `tiles` on the line. With whole workers (share > 0) it is the number
/// of its workers; else it is the number of its tiles and of boundary tiles.
ASSAY_HOST_DEVICE int32_t line_length(const SplitPlanShape &s, int64_t share, int32_t tiles) {
  if (share > 0) return own_workers(s, share, tiles);
  return tiles > 0 ? tiles + kBoundaryTiles : 0;
}

/// The balanced line once its length is known.
struct WorkLine {
  int64_t total;
  int64_t active; // workers with a part of the line. It has a tile for each of them, so that
                  // all workers between the first and the last of a request have keys

  ASSAY_HOST_DEVICE static WorkLine make(const SplitPlanShape &s, int64_t total) {
    return {total, s.workers < total ? s.workers : total};
  }
  /// Where worker w's range begins; begin(active) == total.
  ASSAY_HOST_DEVICE int64_t begin(int64_t w) const { return w * total / active; }
  /// The worker whose range holds `x`: the largest w with begin(w) <= x.
  ASSAY_HOST_DEVICE int64_t worker_of(int64_t x) const { return ((x + 1) * active - 1) / total; }
};

/// The part of the line that a request has.
struct LineSegment {
  int32_t request, len;
  int32_t first;      // the first planned key
  int32_t tiles;      // tiles of the request, spread evenly over the segment
  int64_t begin, end; // on the line

  /// The key that lies at x of the line.
  ASSAY_HOST_DEVICE int32_t key_at(int64_t x, int32_t tile) const {
    if (x == end) return len;
    return first + static_cast<int32_t>(tiles * (x - begin) / (end - begin)) * tile;
  }
};

/// What worker `worker` of a balanced plan holds of the request of a segment.
ASSAY_HOST_DEVICE WorkItem balanced_item(const SplitPlanShape &s, const WorkLine &line,
                                         const LineSegment &segment, int64_t worker) {
  WorkItem item{segment.request, 0, 0, 0, 1, 0, 0, segment.len};
  if (segment.tiles == 0) return item;
  const int64_t first = line.worker_of(segment.begin);
  const int64_t last = line.worker_of(segment.end - 1);
  const int64_t x0 = line.begin(worker) > segment.begin ? line.begin(worker) : segment.begin;
  const int64_t x1 = line.begin(worker + 1) < segment.end ? line.begin(worker + 1) : segment.end;
  item.kv_begin = segment.key_at(x0, s.tile);
  item.kv_end = segment.key_at(x1, s.tile);
  item.split = static_cast<int32_t>(worker - first);
  item.num_splits = static_cast<int32_t>(last - first + 1);
  // Worker w has two slots: 2 w for its head, and 2 w + 1 for the request that goes on behind it.
  item.first_slot = static_cast<int32_t>(2 * first + 1);
  item.next_slot = static_cast<int32_t>(2 * (first + 1));
  return item;
}

/// The item of a worker of a fixed plan. Its request has `len` keys.
ASSAY_HOST_DEVICE WorkItem fixed_item(const SplitPlanShape &s, int64_t worker, int32_t len) {
  const int32_t split = static_cast<int32_t>(worker % s.splits);
  WorkItem item;
  item.request = static_cast<int32_t>(worker / s.splits);
  const int32_t first = first_planned(len, s.span);
  item.kv_begin = first + split_begin(len - first, s.splits, split);
  item.kv_end = first + split_begin(len - first, s.splits, split + 1);
  item.split = split;
  // Without keys, split 0 alone writes the empty row.
  item.num_splits = len > 0 ? s.splits : split == 0 ? 1 : 0;
  item.first_slot = item.request * s.splits;
  item.next_slot = item.first_slot + 1;
  item.seq_len = len;
  return item;
}

/// Workers of a balanced plan, for a device that runs `slots` blocks at once. A worker is
/// `head_tiles` blocks. Of grids of one to four waves it takes the first that fills 95 % of its
/// slots, or else the one that fills them best.
ASSAY_HOST_DEVICE int64_t balanced_workers(int64_t slots, int64_t head_tiles) {
  int64_t best = 1, best_used = 0, best_waves = 1;
  for (int64_t waves = 1; waves <= 4; ++waves) {
    const int64_t workers = waves * slots / head_tiles;
    if (workers == 0) continue;
    if (workers * head_tiles * best_waves > best_used * waves) {
      best = workers;
      best_used = workers * head_tiles;
      best_waves = waves;
    }
    if (best_used * 100 >= 95 * best_waves * slots) break;
  }
  return best;
}

} // namespace assay
