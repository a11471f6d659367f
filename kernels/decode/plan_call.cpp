// SPDX-License-Identifier: Apache-2.0
#include "kernels/decode/plan_call.h"

#include "kernels/host/attention_call.h"

namespace assay {
namespace {

assay_status build_plan_shape(const assay_plan_params *p, SplitPlanShape &shape) {
  ASSAY_RETURN_IF_ERROR(check_struct(p, "assay_plan_params"));
  ASSAY_RETURN_IF_ERROR(check_target(p->target));
  ASSAY_RETURN_IF_ERROR(check_range("batch", p->batch, 0, 1 << 24));
  ASSAY_RETURN_IF_ERROR(check_heads(p->num_qo_heads, p->num_kv_heads));
  ASSAY_RETURN_IF_ERROR(check_head_dim(p->head_dim));
  ASSAY_RETURN_IF_ERROR(check_cache_shape(*p));
  ASSAY_RETURN_IF_ERROR(check_range("max_seq_len", p->max_seq_len, 0, kMaxTokens));
  PagedSplit split;
  ASSAY_RETURN_IF_ERROR(build_paged_split(paged_shape(*p), p->num_splits, split));
  shape = split.plan;
  return check_plan_tiles(shape, p->max_seq_len);
}

} // namespace

assay_status Plan::build(const assay_plan_params *p, PlanCall &call) {
  ASSAY_RETURN_IF_ERROR(build_plan_shape(p, call.shape));
  call.empty = call.shape.batch == 0;
  if (call.empty) return ASSAY_OK;
  ASSAY_RETURN_IF_ERROR(check_pointer("seq_lens", p->seq_lens, 4));
  ASSAY_RETURN_IF_ERROR(check_pointer("plan", p->plan, 16));
  const auto needed = static_cast<uint64_t>(plan_layout(call.shape).bytes);
  if (p->plan_bytes < needed)
    return fail(ASSAY_WORKSPACE_TOO_SMALL, "plan_bytes is {}, this plan needs {}", p->plan_bytes,
                needed);
  call.seq_lens = p->seq_lens;
  call.plan = p->plan;
  return ASSAY_OK;
}

assay_status Plan::size(const assay_plan_params *p, uint64_t *bytes) {
  SplitPlanShape shape;
  ASSAY_RETURN_IF_ERROR(build_plan_shape(p, shape));
  *bytes = plan_layout(shape).bytes;
  return ASSAY_OK;
}

} // namespace assay
