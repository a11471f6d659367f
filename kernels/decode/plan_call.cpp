// SPDX-License-Identifier: Apache-2.0
#include "kernels/decode/plan_call.h"

#include "kernels/host/attention_call.h"
#include "kernels/host/device_info.h"

#include <algorithm>

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

assay_status check_plan_tiles(const SplitPlanShape &s, int32_t tokens) {
  const int64_t tiles = int64_t{s.batch} * (tiles_of(tokens, s.tile) + kBoundaryTiles);
  if (tiles <= kMaxGrid) return ASSAY_OK;
  return fail(ASSAY_CAPACITY_EXCEEDED,
              "batch {} of up to {} tokens has {} tiles, expected at most {}", s.batch, tokens,
              tiles, kMaxGrid);
}

assay_status build_paged_split(const PagedShape &s, int32_t num_splits, PagedSplit &split) {
  ASSAY_RETURN_IF_ERROR(check_range("num_splits", num_splits, 0, 1 << 16));
  const int64_t batch = s.batch;
  const int sms = multiprocessors(s.target);
  if (sms == 0) return fail(ASSAY_LAUNCH_FAILED, "no CUDA device answers");
  const bool eight_fit = shared_bytes(s, 8) <= shared_memory_limit(s.target);
  split.warps = split_kv_warps(batch, s.head_tiles, num_splits, s.head_dim, sms, eight_fit);
  const DecodePolicy policy = decode_policy(s.head_dim, s.kv_bytes, s.row_tiles, split.warps);
  int64_t workers = batch * num_splits;
  if (num_splits == 0) workers = balanced_workers(int64_t{sms} * policy.min_blocks, s.head_tiles);
  if (std::max(workers, batch) * s.head_tiles > kMaxGrid)
    return fail(ASSAY_CAPACITY_EXCEEDED,
                "batch * heads * splits needs {} blocks, expected at most {}",
                std::max(workers, batch) * s.head_tiles, kMaxGrid);
  split.plan = {.batch = s.batch,
                .head_tiles = static_cast<int32_t>(s.head_tiles),
                .splits = num_splits,
                .workers = static_cast<int32_t>(workers),
                .tile = split.warps * policy.tile,
                .span = s.span};
  return ASSAY_OK;
}

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
