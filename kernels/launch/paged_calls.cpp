// SPDX-License-Identifier: Apache-2.0
// Calls of paged_attention_v1, paged_attention_v2 and the planner.
#include "kernels/decode/decode_policy.h"
#include "kernels/decode/kernel_choice.h"
#include "kernels/launch/call_parts.h"
#include "kernels/launch/calls.h"
#include "kernels/launch/checks.h"
#include "kernels/launch/choose.h"
#include "kernels/launch/device_info.h"

#include <cmath>
#include <utility>

namespace assay {
namespace {

/// Shared memory of a block of so many warps. Params as in split_shape().
template <class Params>
int64_t shared_bytes(const Params &p, int warps) {
  const int rows = p.num_qo_heads / p.num_kv_heads * p.q_len;
  return decode_shared_bytes(p.head_dim, bytes_of_kv(p), decode_row_tiles(rows, p.head_dim), warps);
}

/// Every version has a form with kV1Warps warps; v2 takes more only where they fit. Without a
/// device the launch reports that.
assay_status check_shared_memory(const assay_paged_params &p) {
  const int64_t needed = shared_bytes(p, kV1Warps), limit = shared_memory_limit(p.target);
  if (limit == 0 || needed <= limit) return ASSAY_OK;
  return fail(ASSAY_UNSUPPORTED,
              "head_dim {} with {} query rows of a kv head needs {} bytes of shared memory in a "
              "block, this device has {}",
              p.head_dim, p.num_qo_heads / p.num_kv_heads * p.q_len, needed, limit);
}

/// Shape of the plan, and warps. Params is assay_paged_params or assay_plan_params: what a
/// plan depends on has the same names.
template <class Params>
assay_status split_shape(const Params &p, V2Workspace &layout) {
  ASSAY_RETURN_IF_ERROR(check_range("num_splits", p.num_splits, 0, 1 << 16));
  const int64_t batch = p.batch, rows = int64_t{p.num_qo_heads / p.num_kv_heads} * p.q_len;
  const int64_t units =
      int64_t{p.num_kv_heads} * row_tiles_per_group(static_cast<int>(rows), p.head_dim);
  const int sms = multiprocessors(p.target);
  if (sms == 0) return fail(ASSAY_LAUNCH_FAILED, "no CUDA device answers");
  const bool eight_fit = shared_bytes(p, 8) <= shared_memory_limit(p.target);
  layout.warps = v2_warps(batch, units, p.num_splits, p.head_dim, sms, eight_fit);
  const DecodePolicy policy = decode_policy(p.head_dim, bytes_of_kv(p), 1, layout.warps);
  int64_t workers = batch * p.num_splits;
  if (p.num_splits == 0) workers = balanced_workers(int64_t{sms} * policy.min_blocks, units);
  if (workers * units > kMaxGrid || units * batch > kMaxGrid)
    return fail(ASSAY_CAPACITY_EXCEEDED,
                "batch * heads * splits needs {} blocks, expected at most {}",
                std::max(workers, batch) * units, kMaxGrid);
  layout.shape = {.batch = static_cast<int32_t>(batch),
                  .units = static_cast<int32_t>(units),
                  .splits = p.num_splits,
                  .workers = static_cast<int32_t>(workers),
                  .tile = layout.warps * policy.tile,
                  .span = visible_span(p)};
  return ASSAY_OK;
}

template <class Params>
assay_status check_cache_shape(const Params &p) {
  if (p.kv_dtype != p.dtype && p.kv_dtype != ASSAY_E4M3 && p.kv_dtype != ASSAY_E5M2)
    return fail(ASSAY_UNSUPPORTED, "kv_dtype is {}, supported are dtype {}, 3 (e4m3) and 4 (e5m2)",
                p.kv_dtype, p.dtype);
  ASSAY_RETURN_IF_ERROR(check_range("q_len", p.q_len, 1, ASSAY_MAX_Q_LEN));
  return check_range("window", p.window, 0, kMaxTokens);
}

bool is_fp8(const assay_paged_params &p) { return bytes_of_kv(p) == 1; }

assay_status check_features(const assay_paged_params &p) {
  if (p.dtype == ASSAY_FIELD61 && (is_fp8(p) || decode_variant(p).hooks))
    return fail(ASSAY_UNSUPPORTED,
                "dtype field61 has plain attention only: kv_dtype {}, q_len 1, no "
                "window, logits_softcap, alibi_slopes or sinks",
                p.dtype);
  if (!std::isfinite(p.logits_softcap) || p.logits_softcap < 0.0f)
    return fail(ASSAY_INVALID_ARGUMENT, "logits_softcap is {}, expected finite and >= 0",
                p.logits_softcap);
  ASSAY_RETURN_IF_ERROR(check_range("early_start", p.early_start, 0, 1));
  ASSAY_RETURN_IF_ERROR(check_range("even_lengths", p.even_lengths, 0, 1));
  ASSAY_RETURN_IF_ERROR(check_range("k_scale_stride", p.k_scale_stride, 0, 1));
  ASSAY_RETURN_IF_ERROR(check_range("v_scale_stride", p.v_scale_stride, 0, 1));
  if (!is_fp8(p) && (p.k_scale != nullptr || p.v_scale != nullptr))
    return fail(ASSAY_UNSUPPORTED, "{} is given, supported with fp8 KV only",
                p.k_scale != nullptr ? "k_scale" : "v_scale");
  return ASSAY_OK;
}

/// Everything that does not look at a pointer.
assay_status check_paged_shape(const assay_paged_params *p) {
  ASSAY_RETURN_IF_ERROR(check_struct(p, "assay_paged_params"));
  ASSAY_RETURN_IF_ERROR(check_target(p->target));
  ASSAY_RETURN_IF_ERROR(check_decode_shape(*p));
  ASSAY_RETURN_IF_ERROR(check_cache_shape(*p));
  ASSAY_RETURN_IF_ERROR(check_features(*p));
  return check_shared_memory(*p);
}

/// Tensors and strides that plain decode does not have.
assay_status check_feature_rows(const assay_paged_params &p) {
  if (p.q_len > 1) {
    ASSAY_RETURN_IF_ERROR(check_stride("q_stride_token", p.q_stride_token));
    ASSAY_RETURN_IF_ERROR(check_stride("o_stride_token", p.o_stride_token));
    ASSAY_RETURN_IF_ERROR(check_stride_non_negative("lse_stride_token", p.lse_stride_token));
    if (p.batch > 0) {
      ASSAY_RETURN_IF_ERROR(
          check_output_stride("o_stride_token", p.o_stride_token, p.q_len, p.head_dim));
      if (p.lse != nullptr)
        ASSAY_RETURN_IF_ERROR(
            check_output_stride("lse_stride_token", p.lse_stride_token, p.q_len, 1));
    }
  }
  const std::pair<const char *, const float *> vectors[] = {{"k_scale", p.k_scale},
                                                            {"v_scale", p.v_scale},
                                                            {"alibi_slopes", p.alibi_slopes},
                                                            {"sinks", p.sinks}};
  for (const auto &[name, vector] : vectors)
    if (vector != nullptr) ASSAY_RETURN_IF_ERROR(check_pointer(name, vector, 4));
  if (!is_fp8(p)) return ASSAY_OK;
  const std::pair<const char *, int64_t> strides[] = {
      {"kv.k_stride_page", p.kv.k_stride_page},   {"kv.k_stride_token", p.kv.k_stride_token},
      {"kv.k_stride_head", p.kv.k_stride_head},   {"kv.v_stride_page", p.kv.v_stride_page},
      {"kv.v_stride_token", p.kv.v_stride_token}, {"kv.v_stride_head", p.kv.v_stride_head}};
  for (const auto &[name, stride] : strides)
    if (stride % 16 != 0)
      return fail(ASSAY_INVALID_ARGUMENT, "{} is {}, expected a multiple of 16 fp8 elements", name,
                  stride);
  return ASSAY_OK;
}

/// o must not be an input. (The pools may be anything where no row can hold a key.)
assay_status check_output(const assay_paged_params &p) {
  if (p.batch == 0) return ASSAY_OK;
  ASSAY_RETURN_IF_ERROR(check_no_alias("o", p.o, "q", p.q));
  if (p.kv.max_pages == 0) return ASSAY_OK;
  ASSAY_RETURN_IF_ERROR(check_no_alias("o", p.o, "kv.k", p.kv.k));
  return check_no_alias("o", p.o, "kv.v", p.kv.v);
}

FeatureParams feature_params(const assay_paged_params &p) {
  FeatureParams f{};
  f.k_scale = p.k_scale;
  f.v_scale = p.v_scale;
  f.k_scale_stride = p.k_scale_stride;
  f.v_scale_stride = p.v_scale_stride;
  f.alibi_slopes = p.alibi_slopes;
  f.sinks = p.sinks;
  f.softcap_log2 = static_cast<float>(p.logits_softcap * kLog2E);
  f.two_over_softcap = p.logits_softcap > 0.0f ? 2.0f / p.logits_softcap : 0.0f;
  f.q_len = p.q_len;
  f.window = p.window;
  f.span = visible_span(p);
  f.rows = p.q_len * (p.num_qo_heads / p.num_kv_heads);
  f.q_stride_token = p.q_stride_token;
  f.o_stride_token = p.o_stride_token;
  f.lse_stride_token = p.lse_stride_token;
  return f;
}

} // namespace

DecodeVariant decode_variant(const assay_paged_params &p) {
  const int rows = p.q_len * (p.num_qo_heads / p.num_kv_heads);
  return {.row_tiles = decode_row_tiles(rows, p.head_dim),
          .tiles_per_group = row_tiles_per_group(rows, p.head_dim),
          .hooks = p.q_len > 1 || p.window > 0 || p.logits_softcap > 0.0f ||
                   p.alibi_slopes != nullptr || p.sinks != nullptr};
}

int64_t row_tiles(const assay_paged_params &p) {
  return int64_t{p.batch} * p.num_kv_heads * decode_variant(p).tiles_per_group;
}

int row_warps(const assay_paged_params &p) {
  return v1_row_warps(row_tiles(p), p.even_lengths != 0, p.head_dim, bytes_of_kv(p),
                      multiprocessors(p.target));
}

assay_status build_paged_call(const assay_paged_params *p, PagedCall &call) {
  ASSAY_RETURN_IF_ERROR(check_paged_shape(p));
  ASSAY_RETURN_IF_ERROR(check_paged_kv("kv", p->kv));
  if (p->kv.rows != p->batch)
    return fail(ASSAY_INVALID_ARGUMENT, "kv.rows is {}, expected batch {}", p->kv.rows, p->batch);
  call.empty = p->batch == 0;
  ASSAY_RETURN_IF_ERROR(check_rows(*p));
  ASSAY_RETURN_IF_ERROR(check_feature_rows(*p));
  ASSAY_RETURN_IF_ERROR(check_output(*p));
  call.variant = decode_variant(*p);
  call.v1_row_warps = row_warps(*p);
  call.v1_row_tiles = row_tiles(*p);
  if (call.v1_row_tiles > kMaxGrid)
    return fail(ASSAY_CAPACITY_EXCEEDED, "batch * heads needs {} blocks, expected at most {}",
                call.v1_row_tiles, kMaxGrid);
  const DecodePolicy policy =
      decode_policy(p->head_dim, bytes_of_kv(*p), call.variant.row_tiles, kV1Warps);
  const int64_t slots = int64_t{multiprocessors(p->target)} * policy.min_blocks;
  call.v1_blocks = std::min(
      v1_blocks(call.v1_row_tiles, call.v1_row_warps, slots, p->early_start != 0), kMaxGrid);
  call.attention = attention_params(*p);
  call.kv = paged_kv_params(p->kv, bytes_of_kv(*p));
  call.features = feature_params(*p);
  call.attention.early_start = p->early_start != 0;
  return ASSAY_OK;
}

assay_status v2_workspace(const assay_paged_params *p, V2Workspace &layout) {
  ASSAY_RETURN_IF_ERROR(check_paged_shape(p));
  ASSAY_RETURN_IF_ERROR(split_shape(*p, layout));
  const int64_t rows = 8 * decode_variant(*p).row_tiles;
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
  call.run_planner = p->plan == nullptr;
  call.plan = base + call.layout.plan;
  if (call.run_planner) return ASSAY_OK;
  ASSAY_RETURN_IF_ERROR(check_pointer("plan", p->plan, 16));
  const auto needed = static_cast<uint64_t>(plan_layout(call.layout.shape).bytes);
  if (p->plan_bytes < needed)
    return fail(ASSAY_WORKSPACE_TOO_SMALL, "plan_bytes is {}, batch {} needs {}", p->plan_bytes,
                p->batch, needed);
  call.plan = p->plan;
  return ASSAY_OK;
}

assay_status choose_version(const assay_paged_params *p, int64_t total_tokens, int32_t max_seq_len,
                            assay_paged_choice *choice) {
  ASSAY_RETURN_IF_ERROR(check_paged_shape(p));
  ASSAY_RETURN_IF_ERROR(check_range("max_seq_len", max_seq_len, 0, kMaxTokens));
  ASSAY_RETURN_IF_ERROR(
      check_range("total_tokens", total_tokens, 0, int64_t{p->batch} * max_seq_len));
  if (choice == nullptr) return fail(ASSAY_INVALID_ARGUMENT, "choice is null");
  const DecodeLoad load{.batch = std::max<int64_t>(p->batch, 1),
                        .total_tokens = total_tokens,
                        .max_seq_len = max_seq_len,
                        .kv_heads = p->num_kv_heads,
                        .row_bytes = int64_t{2} * p->head_dim * bytes_of_kv(*p),
                        .head_dim = p->head_dim};
  choice->version = p->num_splits > 0 || v2_cost(load) < v1_cost(load) ? 2 : 1;
  choice->even_lengths = lengths_are_even(load);
  return ASSAY_OK;
}

assay_status plan_shape(const assay_plan_params *p, SplitPlanShape &shape) {
  ASSAY_RETURN_IF_ERROR(check_struct(p, "assay_plan_params"));
  ASSAY_RETURN_IF_ERROR(check_target(p->target));
  ASSAY_RETURN_IF_ERROR(check_range("batch", p->batch, 0, 1 << 24));
  ASSAY_RETURN_IF_ERROR(check_heads(p->num_qo_heads, p->num_kv_heads));
  ASSAY_RETURN_IF_ERROR(check_head_dim(p->head_dim));
  ASSAY_RETURN_IF_ERROR(check_cache_shape(*p));
  ASSAY_RETURN_IF_ERROR(check_range("max_seq_len", p->max_seq_len, 0, kMaxTokens));
  V2Workspace layout;
  ASSAY_RETURN_IF_ERROR(split_shape(*p, layout));
  shape = layout.shape;
  const int64_t tiles = int64_t{p->batch} * (tiles_of(p->max_seq_len, shape.tile) + kBoundaryTiles);
  return tiles <= kMaxGrid
             ? ASSAY_OK
             : fail(ASSAY_CAPACITY_EXCEEDED, "batch * max_seq_len is {} tiles, expected at most {}",
                    tiles, kMaxGrid);
}

} // namespace assay
