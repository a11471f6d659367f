// SPDX-License-Identifier: Apache-2.0
// Kernel parameters as the device sees them: plain values that have been checked. Strides count
// elements, but those of pages and tokens count bytes.
#pragma once

#include <cstdint>

namespace assay {

/// Lists the fields of a parameter struct for messages (kernels/host/print_params.h):
/// fields(f) calls f with their names, separated by ", ", and their values.
#define ASSAY_FIELDS(...)                                                                          \
  template <class F>                                                                               \
  auto fields(F f) const {                                                                         \
    return f(#__VA_ARGS__, __VA_ARGS__);                                                           \
  }

/// Divides by a run-time constant without a division: n / divisor = n * magic >> shift for
/// 0 <= n < 2^31. It is the 32-bit round-up reciprocal (Granlund and Montgomery 1994):
///   shift = 31 + ceil(log2 d)
///   magic = ceil(2^shift / d)
/// The error of the product stays below 1 / d for n of 31 bits.
struct FastDivisor {
  uint32_t divisor = 1, magic = 1u << 31, shift = 31;

  static FastDivisor make(uint32_t d) {
    FastDivisor f;
    f.divisor = d;
    while ((uint64_t{1} << (f.shift - 31)) < d)
      ++f.shift;
    f.magic = static_cast<uint32_t>(((uint64_t{1} << f.shift) + d - 1) / d);
    return f;
  }
};

/// What the device knows of an assay_paged_kv.
struct PagedKvParams {
  const void *k, *v;
  const int32_t *page_table; // [rows, max_pages]: a row per request, or per segment of a cascade
  const int32_t *seq_lens;   // [rows]
  int64_t k_stride_head, v_stride_head;
  /// Strides of pages and tokens, in bytes and below 2^32. An address then takes two multiply-adds
  /// of 32 x 32 + 64 bits. (With strides of 64 bits a third of the instructions of a tile were
  /// addresses.)
  uint32_t k_page_bytes, k_token_bytes, v_page_bytes, v_token_bytes;
  uint32_t page_table_stride, page_table_stride_head; // entries
  const int32_t *page_indptr; // [rows + 1] where the lists of rows begin; null: page_table_stride
  FastDivisor page_size;      // tokens
  int32_t rows;

  ASSAY_FIELDS(k, v, page_table, seq_lens, k_stride_head, v_stride_head, k_page_bytes,
               k_token_bytes, v_page_bytes, v_token_bytes, page_table_stride,
               page_table_stride_head, page_indptr, page_size.divisor, rows)
};

/// What every attention kernel has: the queries and the final result.
struct AttentionParams {
  const void *q; // [batch, num_qo_heads, head_dim]
  void *out;     // [batch, num_qo_heads, head_dim]
  float *lse;    // [batch, num_qo_heads], may be null
  int64_t q_stride_batch, q_stride_head;
  int64_t out_stride_batch, out_stride_head;
  int64_t lse_stride_batch, lse_stride_head;
  float scale_log2; // fl(sm_scale * log2 e): score -> base-2 logit
  float lse_unit;   // 1 for base-2 LSE, ln 2 for natural
  int32_t batch, num_qo_heads, num_kv_heads, gqa_group_size;

  ASSAY_FIELDS(q, out, lse, q_stride_batch, q_stride_head, out_stride_batch, out_stride_head,
               lse_stride_batch, lse_stride_head, scale_log2, lse_unit, batch, num_qo_heads,
               num_kv_heads, gqa_group_size)
};

/// Which tokens of a request a cache holds: on a rank follow `run` tokens each other, and `turn`
/// further on the next. A cache with all tokens is that of one rank.
struct ShardParams {
  const int32_t
      *global_lens;      // [batch] tokens of each request on all ranks; null: the cache has all
  FastDivisor run, turn; // turn = run * num_ranks
  int32_t first;         // position of key 0: run * rank

  ASSAY_FIELDS(global_lens, run.divisor, turn.divisor, first)
};

/// What some decode calls use. A kernel that is compiled without features reads `query_rows` and,
/// with an fp8 cache, the scales; it reads nothing else.
struct FeatureParams {
  const float *k_scale, *v_scale; // [1] or [num_kv_heads], may be null
  int32_t k_scale_stride, v_scale_stride;
  const float *alibi_slopes; // [num_qo_heads] natural-base units, may be null
  const float *sinks;        // [num_qo_heads] natural-base logits, may be null
  float softcap_log2;        // fl(cap * log2 e), 0: none
  float two_over_softcap;    // fl(2 / cap)
  int32_t q_len;
  int32_t window_keys; // that a token sees at most, its own included; 0: all
  int32_t span;        // positions that some query token of a request sees, 0: all
  int32_t dealt_span;  // keys of these that the cache may hold, which are dealt to warps
  int32_t query_rows;  // the most rows of one (request, kv head): q_len * gqa_group_size
  int64_t q_stride_token, out_stride_token, lse_stride_token;
  /// [batch + 1] the first query token of each request, and the end; null: q_len each. With it the
  /// batch strides are 0: a token is found by its number.
  const int32_t *qo_indptr;
  ShardParams shard;

  ASSAY_FIELDS(k_scale, v_scale, k_scale_stride, v_scale_stride, alibi_slopes, sinks, softcap_log2,
               two_over_softcap, q_len, window_keys, span, dealt_span, query_rows, q_stride_token,
               out_stride_token, lse_stride_token, qo_indptr, shard)
};

/// Partial results in fp32. A slot holds the query rows of a block and their base-2 LSE.
struct PartialParams {
  float *o_accum;   // [slots, rows, head_dim]
  float *lse_accum; // [slots, rows]

  ASSAY_FIELDS(o_accum, lse_accum)
};

} // namespace assay
