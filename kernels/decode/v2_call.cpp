// SPDX-License-Identifier: Apache-2.0
#include "kernels/decode/v2_call.h"

#include "kernels/host/attention_call.h"
#include "kernels/plan/host_plan.h"

namespace assay {
namespace {

/// Byte offsets inside the workspace.
struct Workspace {
  int64_t o_accum, lse_accum, plan, bytes;
};

Workspace workspace_of(const PagedShape &shape, const SplitPlanShape &plan) {
  const int64_t slots = plan_slots(plan) * plan.head_tiles, rows = 8 * shape.row_tiles;
  Workspace w{};
  w.lse_accum = align_up(slots * rows * shape.head_dim * int64_t{sizeof(float)});
  w.plan = align_up(w.lse_accum + slots * rows * int64_t{sizeof(float)});
  w.bytes = align_up(w.plan + plan_layout(plan).bytes);
  return w;
}

} // namespace

assay_status PagedV2::build(const assay_paged_params *p, SplitKvCall &call) {
  ASSAY_RETURN_IF_ERROR(build_paged_call(p, call.paged));
  ASSAY_RETURN_IF_ERROR(build_paged_split(call.paged.shape, p->num_splits, call.split));
  ASSAY_RETURN_IF_ERROR(check_plan_tiles(p->kv, call.split.plan));
  call.empty = call.paged.empty;
  if (call.empty) return ASSAY_OK;
  const Workspace layout = workspace_of(call.paged.shape, call.split.plan);
  char *base = nullptr;
  ASSAY_RETURN_IF_ERROR(check_workspace(p->workspace, p->workspace_bytes, layout.bytes, base));
  call.partial.o_accum = reinterpret_cast<float *>(base + layout.o_accum);
  call.partial.lse_accum = reinterpret_cast<float *>(base + layout.lse_accum);
  call.run_planner = p->plan == nullptr;
  call.plan = base + layout.plan;
  if (call.run_planner) return ASSAY_OK;
  ASSAY_RETURN_IF_ERROR(check_plan_buffer(*p, plan_layout(call.split.plan).bytes));
  call.plan = p->plan;
  return ASSAY_OK;
}

assay_status PagedV2::workspace_size(const assay_paged_params *p, uint64_t *bytes) {
  PagedShape shape;
  PagedSplit split;
  ASSAY_RETURN_IF_ERROR(build_cached_shape(p, shape));
  ASSAY_RETURN_IF_ERROR(build_paged_split(shape, p->num_splits, split));
  ASSAY_RETURN_IF_ERROR(check_plan_tiles(p->kv, split.plan));
  *bytes = workspace_of(shape, split.plan).bytes;
  return ASSAY_OK;
}

assay_status PagedV2::key_order(const void *params, assay_key_tile *tiles, int64_t capacity,
                                int64_t *first) {
  const auto &p = *static_cast<const assay_paged_params *>(params);
  PagedShape shape;
  PagedSplit split;
  ASSAY_RETURN_IF_ERROR(build_paged_shape(&p, shape));
  ASSAY_RETURN_IF_ERROR(build_paged_split(shape, p.num_splits, split));
  PagedKeyOrder order(shape, split.warps, tiles, capacity, first);
  const RequestItems items(split.plan, p.kv.seq_lens);
  for (int32_t request = 0; request < p.batch; ++request, order.end_request()) {
    int index = 0;
    for (const WorkItem &item : items.of(request))
      order.add({split.warps, index++, item.kv_begin, item.kv_end});
  }
  return set_ok();
}

} // namespace assay
