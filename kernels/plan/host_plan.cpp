// SPDX-License-Identifier: Apache-2.0
#include "kernels/plan/host_plan.h"

namespace assay {
namespace {

struct HostLoad {
  int32_t operator()(const int32_t *p) const { return *p; }
};

} // namespace

std::vector<int32_t> host_plan(const SplitPlanShape &shape, const int32_t *seq_lens) {
  if (shape.splits > 0) return {};
  std::vector<int32_t> buffer(plan_entries(shape), 0);
  for (int r = 0; r < shape.batch; ++r)
    buffer[r + 1] = buffer[r] + tiles_of(seq_lens[r], shape.tile);
  const int64_t total = int64_t{buffer[shape.batch]} * shape.units;
  const int64_t active = active_workers(shape, total);
  for (int64_t w = 0; w < active; ++w)
    buffer[shape.batch + 1 + w] = request_of(buffer.data(), shape.batch, shape.units,
                                             worker_begin(w, active, total), HostLoad{});
  return buffer;
}

SplitPlan view_plan(const SplitPlanShape &shape, const int32_t *seq_lens, const int32_t *buffer) {
  if (shape.splits > 0) return {shape, seq_lens, nullptr, nullptr};
  return {shape, seq_lens, buffer, buffer + shape.batch + 1};
}

std::vector<WorkItem> host_items(const SplitPlan &plan, int32_t request, int32_t unit) {
  std::vector<WorkItem> items;
  const SegmentSlots slots = segment_slots(plan, request, unit, HostLoad{});
  for (int i = 0; i < slots.count; ++i) {
    const int64_t slot = slots.slot(i);
    const int64_t worker = plan.shape.splits > 0 ? slot : slot / 2;
    ItemCursor cursor(plan, worker, HostLoad{});
    WorkItem item;
    while (cursor.next(item))
      if (item.request == request && item.unit == unit) items.push_back(item);
  }
  return items;
}

} // namespace assay
