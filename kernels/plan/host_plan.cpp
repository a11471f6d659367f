// SPDX-License-Identifier: Apache-2.0
#include "kernels/plan/host_plan.h"

#include "kernels/plan/plan_build.h"

#include <algorithm>
#include <cstring>

namespace assay {
namespace {

struct HostLoad {
  int32_t operator()(const int32_t *p) const { return *p; }
};

template <class T>
void store(char *base, int64_t offset, const T &value) {
  std::memcpy(base + offset, &value, sizeof value);
}

/// The smallest share with which there are enough whole workers, or 0.
int64_t share_of_whole_workers(const PlanInput &in) {
  const SplitPlanShape &s = in.shape;
  int64_t total = 0;
  for (int r = 0; r < s.batch; ++r)
    total += dealt_tiles(in, r, HostLoad{});
  for (int i = 0; i < kShares && may_have_whole_workers(s, total, i); ++i) {
    const int64_t share = share_of_line(total, i);
    int64_t workers = 0;
    for (int r = 0; r < s.batch; ++r)
      workers += own_workers(s, share, dealt_tiles(in, r, HostLoad{}));
    if (workers <= s.workers) return share;
  }
  return 0;
}

void write_line(const PlanInput &in, int32_t *line_indptr, int32_t *order) {
  const SplitPlanShape &s = in.shape;
  const int64_t share = share_of_whole_workers(in);
  int32_t x = 0, before = 0;
  for (int r = 0; r < s.batch; ++r) {
    const int32_t tiles = dealt_tiles(in, r, HostLoad{});
    order[line_index_of(s, r, before, tiles > 0)] = r;
    if (tiles == 0) continue;
    line_indptr[before++] = x;
    x += line_length(s, share, tiles);
  }
  std::fill(line_indptr + before, line_indptr + s.batch + 1, x);
}

/// The items of a balanced plan that the workers hold of the request at `index` of its order.
std::vector<WorkItem> balanced_items(const PlanInput &in, int32_t index) {
  const WorkLine line = work_line(in, HostLoad{});
  const LineSegment at = line_segment(in, index, HostLoad{});
  if (at.tiles == 0) return {balanced_item(in.shape, line, at, 0)};
  std::vector<WorkItem> items;
  for (int64_t w = line.worker_of(at.begin); w <= line.worker_of(at.end - 1); ++w)
    items.push_back(balanced_item(in.shape, line, at, w));
  return items;
}

} // namespace

HostPlan::HostPlan(const SplitPlanShape &shape, const int32_t *seq_lens, const int32_t *covered)
    : shape_(shape) {
  const PlanLayout layout = plan_layout(shape);
  words_.resize(static_cast<size_t>(layout.bytes) / sizeof(WorkItem) + 1);
  char *base = reinterpret_cast<char *>(words_.data());
  auto *line_indptr = reinterpret_cast<int32_t *>(base + layout.line_indptr);
  auto *order = reinterpret_cast<int32_t *>(base + layout.order);
  const PlanInput input{shape, seq_lens, line_indptr, order, covered};
  write_line(input, line_indptr, order);
  for (int64_t r = 0; shape.splits == 0 && r < shape.batch; ++r)
    store(base, layout.request_items + r * static_cast<int64_t>(sizeof(WorkItem)),
          request_item(input, r, HostLoad{}));
  for (int64_t w = 0; w < shape.workers; ++w)
    store(base, layout.workers + w * static_cast<int64_t>(sizeof(WorkerItems)),
          worker_items(input, w, HostLoad{}));
}

SplitPlan HostPlan::view() const { return view_plan(shape_, words_.data()); }

SplitPlan view_plan(const SplitPlanShape &shape, const void *buffer) {
  const PlanLayout layout = plan_layout(shape);
  char *base = static_cast<char *>(const_cast<void *>(buffer));
  return {shape, reinterpret_cast<WorkerItems *>(base + layout.workers),
          reinterpret_cast<WorkItem *>(base + layout.request_items),
          reinterpret_cast<uint32_t *>(base + layout.counters)};
}

std::vector<WorkItem> items_of_worker(const SplitPlan &plan, int64_t worker) {
  std::vector<WorkItem> items;
  const WorkerItems &w = plan.workers[worker];
  if (w.head.num_splits > 0) items.push_back(w.head);
  for (int32_t i = w.begin; i < w.end; ++i)
    items.push_back(i == w.begin ? w.first : plan.request_items[i]);
  for (int32_t i = w.empty_begin; i < w.empty_end; ++i)
    items.push_back(plan.request_items[i]);
  return items;
}

RequestItems::RequestItems(const SplitPlanShape &shape, const int32_t *seq_lens,
                           const int32_t *covered)
    : input_{shape, seq_lens, nullptr, nullptr, covered} {
  if (shape.splits > 0) return;
  const auto batch = static_cast<size_t>(shape.batch);
  line_indptr_.resize(batch + 1), order_.resize(batch), index_of_.resize(batch);
  input_.line_indptr = line_indptr_.data(), input_.order = order_.data();
  write_line(input_, line_indptr_.data(), order_.data());
  for (size_t index = 0; index < batch; ++index)
    index_of_[static_cast<size_t>(order_[index])] = static_cast<int32_t>(index);
}

std::vector<WorkItem> RequestItems::of(int32_t request) const {
  const SplitPlanShape &shape = input_.shape;
  if (shape.splits == 0) return balanced_items(input_, index_of_[static_cast<size_t>(request)]);
  std::vector<WorkItem> items;
  const int64_t first = int64_t{request} * shape.splits;
  for (int64_t w = first; w < first + shape.splits; ++w)
    if (const WorkItem item = fixed_item(shape, w, input_.seq_lens[request]); item.num_splits > 0)
      items.push_back(item);
  return items;
}

} // namespace assay
