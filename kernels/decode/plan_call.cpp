// SPDX-License-Identifier: Apache-2.0
#include "kernels/decode/plan_call.h"

#include "kernels/host/attention_call.h"

namespace assay {
namespace {

assay_status build_plan_shape(const assay_paged_params *p, SplitPlanShape &shape) {
  PagedShape paged;
  PagedSplit split;
  ASSAY_RETURN_IF_ERROR(build_cached_shape(p, paged));
  ASSAY_RETURN_IF_ERROR(build_paged_split(paged, p->num_splits, split));
  shape = split.plan;
  return check_plan_tiles(p->kv, shape);
}

} // namespace

assay_status PagedV2Plan::build(const assay_paged_params *p, PagedV2PlanCall &call) {
  ASSAY_RETURN_IF_ERROR(build_plan_shape(p, call.shape));
  call.empty = p->batch == 0;
  if (call.empty) return ASSAY_OK;
  ASSAY_RETURN_IF_ERROR(check_pointer("kv.seq_lens", p->kv.seq_lens, 4));
  ASSAY_RETURN_IF_ERROR(check_plan_buffer(*p, plan_layout(call.shape).bytes));
  call.seq_lens = p->kv.seq_lens;
  call.plan = p->plan;
  return ASSAY_OK;
}

assay_status PagedV2Plan::size(const assay_paged_params *p, uint64_t *bytes) {
  SplitPlanShape shape;
  ASSAY_RETURN_IF_ERROR(build_plan_shape(p, shape));
  *bytes = plan_layout(shape).bytes;
  return ASSAY_OK;
}

} // namespace assay
