// SPDX-License-Identifier: Apache-2.0
#include "kernels/blocks/paged_call.h"

#include "kernels/host/attention_call.h"

#include <algorithm>
#include <utility>

namespace assay {
namespace {

/// How the rows of q, o and lse are found: in a ragged call by the number of a token alone.
assay_paged_params with_row_strides(const assay_paged_params &p, int64_t q_batch, int64_t o_batch,
                                    int64_t lse_batch) {
  assay_paged_params out = p;
  if (p.qo_indptr == nullptr) return out;
  out.q_stride_batch = q_batch;
  out.out_stride_batch = o_batch;
  out.lse_stride_batch = lse_batch;
  return out;
}

/// Strides of query tokens, which plain decode does not have.
assay_status check_token_strides(const assay_paged_params &p) {
  const bool ragged = p.qo_indptr != nullptr;
  if (p.q_len == 1 && !ragged) return ASSAY_OK;
  const int64_t tokens = ragged ? int64_t{p.batch} * p.q_len : p.q_len;
  ASSAY_RETURN_IF_ERROR(check_stride("q_stride_token", p.q_stride_token));
  ASSAY_RETURN_IF_ERROR(check_stride("out_stride_token", p.out_stride_token));
  ASSAY_RETURN_IF_ERROR(check_stride_non_negative("lse_stride_token", p.lse_stride_token));
  if (p.batch == 0) return ASSAY_OK;
  ASSAY_RETURN_IF_ERROR(
      check_output_stride("out_stride_token", p.out_stride_token, tokens, p.head_dim));
  if (p.lse == nullptr) return ASSAY_OK;
  return check_output_stride("lse_stride_token", p.lse_stride_token, tokens, 1);
}

assay_status check_global_lens(const assay_paged_params &p) {
  if (p.dcp_world_size == 0 && p.global_lens != nullptr)
    return fail(ASSAY_INVALID_ARGUMENT, "global_lens is given, and num_ranks is 0");
  if (p.dcp_world_size == 0 || p.batch == 0) return ASSAY_OK;
  return check_pointer("global_lens", p.global_lens, 4);
}

assay_status check_feature_vectors(const assay_paged_params &p) {
  const std::pair<const char *, const void *> vectors[] = {{"k_scale", p.k_scale},
                                                           {"v_scale", p.v_scale},
                                                           {"alibi_slopes", p.alibi_slopes},
                                                           {"sinks", p.sinks},
                                                           {"qo_indptr", p.qo_indptr}};
  for (const auto &[name, vector] : vectors)
    if (vector != nullptr) ASSAY_RETURN_IF_ERROR(check_pointer(name, vector, 4));
  return check_global_lens(p);
}

assay_status check_fp8_strides(const assay_paged_kv &kv) {
  const std::pair<const char *, int64_t> strides[] = {
      {"kv.k_stride_page", kv.k_stride_page},   {"kv.k_stride_token", kv.k_stride_token},
      {"kv.k_stride_head", kv.k_stride_head},   {"kv.v_stride_page", kv.v_stride_page},
      {"kv.v_stride_token", kv.v_stride_token}, {"kv.v_stride_head", kv.v_stride_head}};
  for (const auto &[name, stride] : strides)
    if (stride % 16 != 0)
      return fail(ASSAY_INVALID_ARGUMENT, "{} is {}, expected a multiple of 16 fp8 elements", name,
                  stride);
  return ASSAY_OK;
}

/// o must not be an input. (The pools may be anything where no request can hold a key.)
assay_status check_output(const assay_paged_params &p) {
  if (p.batch == 0) return ASSAY_OK;
  ASSAY_RETURN_IF_ERROR(check_no_alias("out", p.out, "q", p.q));
  if (p.kv.max_pages == 0) return ASSAY_OK;
  ASSAY_RETURN_IF_ERROR(check_no_alias("out", p.out, "kv.k", p.kv.k));
  return check_no_alias("out", p.out, "kv.v", p.kv.v);
}

/// A cache that is no shard is that of one rank.
ShardParams shard_params(const assay_paged_params &p) {
  const bool shard = p.dcp_world_size > 0;
  const int32_t run = shard ? p.dcp_interleave : 1;
  return {shard ? p.global_lens : nullptr, FastDivisor::make(run),
          FastDivisor::make(run * (shard ? p.dcp_world_size : 1)), run * p.dcp_rank};
}

FeatureParams feature_params(const assay_paged_params &p, const PagedShape &shape) {
  FeatureParams f{};
  f.k_scale = p.k_scale;
  f.v_scale = p.v_scale;
  f.k_scale_stride = p.k_scale_stride;
  f.v_scale_stride = p.v_scale_stride;
  f.alibi_slopes = p.alibi_slopes;
  f.sinks = p.sinks;
  f.softcap_log2 = static_cast<float>(p.logits_soft_cap * kLog2E);
  f.two_over_softcap = p.logits_soft_cap > 0.0f ? 2.0f / p.logits_soft_cap : 0.0f;
  f.q_len = p.q_len;
  f.window_keys = p.window_left + 1;
  f.span = visible_positions(p);
  f.dealt_span = shape.span;
  f.query_rows = shape.query_rows;
  f.q_stride_token = p.q_stride_token;
  f.out_stride_token = p.out_stride_token;
  f.lse_stride_token = p.lse_stride_token;
  f.qo_indptr = p.qo_indptr;
  f.shard = shard_params(p);
  return f;
}

/// The number of parts of each softmax weight in a kernel with `block_warps` warps per block.
int32_t p_parts(const PagedShape &s, int block_warps) {
  const bool two =
      s.query_rows <= kTwoPartRows && has_two_part_weights(s.kv_bytes, block_warps, s.features);
  return two ? 2 : 1;
}

} // namespace

assay_status check_cache(const assay_paged_params &p, const PagedShape &shape) {
  ASSAY_RETURN_IF_ERROR(check_paged_kv(p.kv, p.num_kv_heads));
  ASSAY_RETURN_IF_ERROR(check_cache_rows(p));
  return shape.kv_bytes == 1 ? check_fp8_strides(p.kv) : ASSAY_OK;
}

assay_status build_paged_call(const assay_paged_params *p, PagedCall &call) {
  ASSAY_RETURN_IF_ERROR(build_paged_shape(p, call.shape));
  ASSAY_RETURN_IF_ERROR(check_cache(*p, call.shape));
  ASSAY_RETURN_IF_ERROR(check_token_strides(*p));
  // Tokens of a ragged call follow each other as requests do elsewhere.
  ASSAY_RETURN_IF_ERROR(check_query_tensors(
      with_row_strides(*p, p->q_stride_token, p->out_stride_token, p->lse_stride_token)));
  ASSAY_RETURN_IF_ERROR(check_feature_vectors(*p));
  ASSAY_RETURN_IF_ERROR(check_output(*p));
  call.empty = p->batch == 0;
  call.attention = {attention_params(with_row_strides(*p, 0, 0, 0)), p->enable_pdl != 0};
  call.kv = paged_kv_params(p->kv, call.shape.kv_bytes);
  call.features = feature_params(*p, call.shape);
  return ASSAY_OK;
}

PagedKeyOrder::PagedKeyOrder(const PagedShape &shape, int block_warps, assay_key_tile *tiles,
                             int64_t capacity, int64_t *first)
    : writer_(tiles, capacity, first, p_parts(shape, block_warps)),
      tile_(decode_policy(shape.head_dim, shape.kv_bytes, shape.row_tiles, kDecodeWarps).tile) {}

void PagedKeyOrder::add(const TeamRange &r) {
  for (int warp = 0; warp < r.warps; ++warp)
    for (int32_t base = r.begin + warp * tile_; base < r.end; base += r.warps * tile_)
      writer_.add(0, r.split, warp, base, std::min(base + tile_, r.end));
}

void PagedKeyOrder::add_shared(int32_t split, int32_t begin, int32_t end, int32_t tile) {
  for (int32_t base = begin; base < end; base += tile)
    writer_.add(0, split, 0, base, std::min(base + tile, end), 1);
}

} // namespace assay
