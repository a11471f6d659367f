// SPDX-License-Identifier: Apache-2.0
// Calls of paged_attention_v1, paged_attention_v2 and the planner.
#include "kernels/decode/decode_policy.h"
#include "kernels/launch/call_parts.h"
#include "kernels/launch/calls.h"
#include "kernels/launch/checks.h"
#include "kernels/launch/device_info.h"

namespace assay {
namespace {

assay_status split_shape(assay_target target, int64_t batch, int32_t num_qo_heads,
                         int32_t num_kv_heads, int32_t num_splits, SplitPlanShape &shape,
                         int &warps) {
  ASSAY_RETURN_IF_ERROR(check_range("num_splits", num_splits, 0, 1 << 16));
  const int64_t units = int64_t{num_kv_heads} * row_tiles_per_group(num_qo_heads / num_kv_heads);
  const int sms = multiprocessors(target);
  if (sms == 0) return fail(ASSAY_LAUNCH_FAILED, "no CUDA device answers");
  warps = v2_warps(batch, units, num_splits, sms);
  int64_t workers = batch * num_splits;
  if (num_splits == 0)
    workers = balanced_workers(int64_t{sms} * decode_policy(128, 1, warps).min_blocks, units);
  if (workers * units > kMaxGrid || units * batch > kMaxGrid)
    return fail(ASSAY_CAPACITY_EXCEEDED,
                "batch * heads * splits needs {} blocks, expected at most {}",
                std::max(workers, batch) * units, kMaxGrid);
  shape = {.batch = static_cast<int32_t>(batch),
           .units = static_cast<int32_t>(units),
           .splits = num_splits,
           .workers = static_cast<int32_t>(workers),
           .tile = kPlanTile};
  return ASSAY_OK;
}

/// Everything that does not look at a pointer.
assay_status check_paged_shape(const assay_paged_params *p) {
  ASSAY_RETURN_IF_ERROR(check_struct(p, "assay_paged_params"));
  ASSAY_RETURN_IF_ERROR(check_target(p->target));
  ASSAY_RETURN_IF_ERROR(check_decode_shape(*p));
  ASSAY_RETURN_IF_ERROR(check_range("q_len", p->q_len, 1, ASSAY_MAX_Q_LEN));
  if (p->kv_dtype != p->dtype)
    return fail(ASSAY_UNSUPPORTED, "kv_dtype is {}, supported is dtype {}", p->kv_dtype, p->dtype);
  if (p->q_len != 1 || p->window != 0 || p->logits_softcap != 0.0f || p->alibi_slopes != nullptr ||
      p->sinks != nullptr)
    return fail(ASSAY_UNSUPPORTED, "q_len, window, logits_softcap, alibi_slopes and sinks have no "
                                   "instantiation yet");
  return ASSAY_OK;
}

} // namespace

assay_status build_paged_call(const assay_paged_params *p, PagedCall &call) {
  ASSAY_RETURN_IF_ERROR(check_paged_shape(p));
  ASSAY_RETURN_IF_ERROR(check_paged_kv("kv", p->kv));
  if (p->kv.rows != p->batch)
    return fail(ASSAY_INVALID_ARGUMENT, "kv.rows is {}, expected batch {}", p->kv.rows, p->batch);
  call.empty = p->batch == 0;
  ASSAY_RETURN_IF_ERROR(check_rows(*p));
  const int64_t blocks =
      int64_t{p->batch} * p->num_kv_heads * row_tiles_per_group(p->num_qo_heads / p->num_kv_heads);
  if (blocks > kMaxGrid)
    return fail(ASSAY_CAPACITY_EXCEEDED, "batch * heads needs {} blocks, expected at most {}",
                blocks, kMaxGrid);
  call.attention = attention_params(*p);
  call.kv = paged_kv_params(p->kv);
  return ASSAY_OK;
}

assay_status v2_workspace(const assay_paged_params *p, V2Workspace &layout) {
  ASSAY_RETURN_IF_ERROR(check_paged_shape(p));
  ASSAY_RETURN_IF_ERROR(split_shape(p->target, p->batch, p->num_qo_heads, p->num_kv_heads,
                                    p->num_splits, layout.shape, layout.warps));
  const int64_t rows = 8 * decode_row_tiles(p->num_qo_heads / p->num_kv_heads);
  const int64_t slots = plan_slots(layout.shape) * layout.shape.units;
  layout.o_accum = 0;
  layout.lse_accum = align_up(slots * rows * p->head_dim * int64_t{sizeof(float)});
  layout.plan = align_up(layout.lse_accum + slots * rows * int64_t{sizeof(float)});
  layout.bytes = align_up(layout.plan + plan_layout(layout.shape).bytes);
  return ASSAY_OK;
}

assay_status build_v2_call(const assay_paged_params *p, PagedV2Call &call) {
  ASSAY_RETURN_IF_ERROR(build_paged_call(p, call.paged));
  ASSAY_RETURN_IF_ERROR(v2_workspace(p, call.layout));
  if (call.paged.empty) return ASSAY_OK;
  char *base = nullptr;
  ASSAY_RETURN_IF_ERROR(check_workspace(p->workspace, p->workspace_bytes, call.layout.bytes, base));
  call.partial.o_accum = reinterpret_cast<float *>(base + call.layout.o_accum);
  call.partial.lse_accum = reinterpret_cast<float *>(base + call.layout.lse_accum);
  call.partial.rows_per_slot = 8 * decode_row_tiles(p->num_qo_heads / p->num_kv_heads);
  call.run_planner = p->plan == nullptr;
  call.plan = base + call.layout.plan;
  if (call.run_planner) return ASSAY_OK;
  ASSAY_RETURN_IF_ERROR(check_pointer("plan", p->plan, 16));
  const auto needed = static_cast<uint64_t>(plan_layout(call.layout.shape).bytes);
  if (p->plan_bytes < needed)
    return fail(ASSAY_INVALID_ARGUMENT, "plan_bytes is {}, expected at least {} for batch {}",
                p->plan_bytes, needed, p->batch);
  call.plan = p->plan;
  return ASSAY_OK;
}

assay_status plan_shape(const assay_plan_params *p, SplitPlanShape &shape) {
  ASSAY_RETURN_IF_ERROR(check_struct(p, "assay_plan_params"));
  ASSAY_RETURN_IF_ERROR(check_target(p->target));
  ASSAY_RETURN_IF_ERROR(check_range("batch", p->batch, 0, 1 << 24));
  ASSAY_RETURN_IF_ERROR(check_heads(p->num_qo_heads, p->num_kv_heads));
  ASSAY_RETURN_IF_ERROR(check_head_dim(p->head_dim));
  ASSAY_RETURN_IF_ERROR(check_range("max_seq_len", p->max_seq_len, 0, kMaxTokens));
  int warps = 0;
  ASSAY_RETURN_IF_ERROR(split_shape(p->target, p->batch, p->num_qo_heads, p->num_kv_heads,
                                    p->num_splits, shape, warps));
  const int64_t tiles = int64_t{p->batch} * tiles_of(p->max_seq_len, shape.tile);
  return tiles <= kMaxGrid
             ? ASSAY_OK
             : fail(ASSAY_CAPACITY_EXCEEDED, "batch * max_seq_len is {} tiles, expected at most {}",
                    tiles, kMaxGrid);
}

} // namespace assay
