// SPDX-License-Identifier: Apache-2.0
// The narrow kernels, each by its style.
#pragma once

#include <iterator>

#include "properties/tests/narrow_style.h"

namespace assay::narrow {

inline constexpr assay_format kE4m3 = ASSAY_FORMAT_E4M3, kE5m2 = ASSAY_FORMAT_E5M2,
                              kHalf = ASSAY_FORMAT_FP16, kBf16 = ASSAY_FORMAT_BF16;

template <int kMost>
const char *batch_to(const assay_paged_params &p) {
  return p.batch <= kMost ? nullptr : "more requests than were built for";
}

inline const char *hnd_only(const assay_paged_params &p) {
  const bool hnd = p.kv.k_stride_token == p.head_dim && p.kv.v_stride_token == p.head_dim;
  return hnd ? nullptr : "the tokens of a head stand side by side only";
}

inline const char *dense_only(const assay_paged_params &p) {
  const int64_t dims = p.head_dim, row = dims * p.num_qo_heads, keys = dims * p.num_kv_heads;
  const bool q =
      p.q_stride_head == dims && p.q_stride_token == row && p.q_stride_batch == row * p.q_len;
  const bool o =
      p.out_stride_head == dims && p.out_stride_token == row && p.out_stride_batch == row * p.q_len;
  const bool lse = !p.lse || (p.lse_stride_head == 1 && p.lse_stride_token == p.num_qo_heads &&
                              p.lse_stride_batch == int64_t{p.num_qo_heads} * p.q_len);
  const bool k = p.kv.k_stride_head == dims && p.kv.k_stride_token == keys &&
                 p.kv.k_stride_page == keys * p.kv.page_size;
  const bool v = p.kv.v_stride_head == dims && p.kv.v_stride_token == keys &&
                 p.kv.v_stride_page == keys * p.kv.page_size;
  return q && o && lse && k && v ? nullptr : "dense tensors only";
}

inline const char *one_model(const assay_paged_params &p) {
  const bool heads = p.num_kv_heads == 8 && p.num_qo_heads == 64;
  const bool few = p.batch <= 4 && p.kv.max_pages <= 32;
  return heads && few && p.lse ? nullptr : "64 heads of 8, 4 requests of 512 keys, with LSE";
}

inline constexpr Style kStyles[] = {
    {.name = "bf16_128_page16",
     .dtype = ASSAY_BF16,
     .kv = ASSAY_BF16,
     .head_dim = 128,
     .page_size = 16},
    {.name = "fp16_64_page32",
     .dtype = ASSAY_FP16,
     .kv = ASSAY_FP16,
     .head_dim = 64,
     .page_size = 32},
    {.name = "bf16_256_page64",
     .dtype = ASSAY_BF16,
     .kv = ASSAY_BF16,
     .head_dim = 256,
     .page_size = 64},
    {.name = "natural", .natural = true, .kv = ASSAY_BF16, .page_size = 16},
    {.name = "natural_all_features", .natural = true, .features = Features::kAll},
    {.name = "natural_splits",
     .natural = true,
     .splits = 8,
     .dtype = ASSAY_BF16,
     .kv = ASSAY_BF16,
     .head_dim = 64},
    {.name = "v1_two_passes",
     .natural = true,
     .tile = kMaxKeys,
     .dtype = ASSAY_FP16,
     .kv = ASSAY_FP16,
     .head_dim = 128},
    {.name = "v2_two_passes",
     .natural = true,
     .tile = kMaxKeys,
     .splits = 16,
     .dtype = ASSAY_BF16,
     .kv = ASSAY_BF16,
     .head_dim = 128,
     .page_size = 16},
    {.name = "newest_first", .backwards = true, .head_dim = 64, .features = Features::kWindow},
    {.name = "large_tiles", .tile = 128, .dtype = ASSAY_BF16, .kv = ASSAY_BF16, .page_size = 128},
    {.name = "key_by_key", .tile = 1, .dtype = ASSAY_FP16, .kv = ASSAY_FP16, .head_dim = 64},
    {.name = "sums_fp16",
     .sum = kHalf,
     .tree = true,
     .tile = 64,
     .dtype = ASSAY_FP16,
     .kv = ASSAY_FP16,
     .head_dim = 64},
    {.name = "sums_bf16",
     .sum = kBf16,
     .tree = true,
     .tile = 32,
     .dtype = ASSAY_BF16,
     .kv = ASSAY_BF16,
     .head_dim = 128},
    {.name = "p_e4m3",
     .p = kE4m3,
     .tile = 64,
     .dtype = ASSAY_BF16,
     .kv = ASSAY_BF16,
     .head_dim = 128},
    {.name = "p_e5m2_natural",
     .p = kE5m2,
     .natural = true,
     .tile = 64,
     .dtype = ASSAY_FP16,
     .kv = ASSAY_FP16,
     .head_dim = 64},
    {.name = "p_fp16_splits",
     .p = kHalf,
     .splits = 4,
     .parts = Parts::kAskedOrByBatch,
     .dtype = ASSAY_BF16,
     .kv = ASSAY_BF16,
     .page_size = 16},
    {.name = "q_e4m3", .q = kE4m3, .dtype = ASSAY_BF16, .kv = ASSAY_BF16, .head_dim = 64},
    {.name = "fp8_everywhere",
     .p = kE4m3,
     .q = kE4m3,
     .natural = true,
     .tile = 64,
     .dtype = ASSAY_BF16,
     .kv = ASSAY_E4M3,
     .head_dim = 128,
     .page_size = 64},
    {.name = "fp8_cache_only",
     .p = kHalf,
     .tile = 32,
     .dtype = ASSAY_FP16,
     .kv = ASSAY_E5M2,
     .features = Features::kWindow},
    {.name = "mha_with_lse",
     .p = kBf16,
     .splits = 2,
     .dtype = ASSAY_BF16,
     .kv = ASSAY_BF16,
     .head_dim = 64,
     .group = 1,
     .without_lse = false},
    {.name = "own_splits_no_empty_rows",
     .splits = 8,
     .parts = Parts::kAlways,
     .dtype = ASSAY_BF16,
     .kv = ASSAY_BF16,
     .without_keys = false},
    // One thing that each does or asks for.
    {.name = "splits_by_batch", .splits = 8, .parts = Parts::kByBatch, .kv = ASSAY_BF16},
    {.name = "splits_by_capacity", .splits = 8, .parts = Parts::kByCapacity, .kv = ASSAY_BF16},
    {.name = "keys_in_any_order", .any_order = true, .kv = ASSAY_BF16},
    {.name = "fp64", .fp64 = true, .kv = ASSAY_FP16},
    {.name = "p_bf16_in_order", .p = kBf16, .ordered = true, .kv = ASSAY_BF16},
    {.name = "p_and_sum_of_the_call",
     .p = ASSAY_FORMAT_CALL,
     .sum = ASSAY_FORMAT_CALL,
     .kv = ASSAY_BF16},
    {.name = "partials_of_the_call",
     .partial = ASSAY_FORMAT_CALL,
     .splits = 4,
     .parts = Parts::kAlways,
     .kv = ASSAY_BF16},
    {.name = "scores_bf16", .score = kBf16, .kv = ASSAY_BF16},
    {.name = "scale_in_q", .scaled_q = true, .kv = ASSAY_BF16},
    {.name = "four_states", .states = 4, .kv = ASSAY_BF16},
    {.name = "writes_twice", .twice = true, .kv = ASSAY_BF16},
    {.name = "tiles_of_7", .tile = 7, .kv = ASSAY_BF16},
    {.name = "ragged", .kv = ASSAY_BF16, .ragged = true},
    {.name = "needs_ragged",
     .kv = ASSAY_BF16,
     .features = Features::kAll,
     .ragged = true,
     .refusal =
         [](const assay_paged_params &p) { return p.qo_indptr ? nullptr : "qo_indptr is needed"; }},
    {.name = "batch_to_4", .kv = ASSAY_BF16, .refusal = batch_to<4>},
    {.name = "batch_to_64", .kv = ASSAY_BF16, .refusal = batch_to<64>},
    {.name = "batches_of_graphs",
     .kv = ASSAY_BF16,
     .refusal =
         [](const assay_paged_params &p) {
           const bool captured = p.batch == 1 || p.batch == 2 || p.batch == 4 || p.batch % 8 == 0;
           return captured && p.batch > 0 ? nullptr : "batch 1, 2, 4 or a multiple of 8";
         }},
    {.name = "kv_heads_8",
     .kv = ASSAY_BF16,
     .refusal =
         [](const assay_paged_params &p) {
           return p.num_kv_heads == 8 ? nullptr : "8 kv heads only";
         }},
    {.name = "one_kv_head",
     .kv = ASSAY_BF16,
     .refusal =
         [](const assay_paged_params &p) { return p.num_kv_heads == 1 ? nullptr : "one kv head"; }},
    {.name = "groups_of_1_or_8",
     .kv = ASSAY_BF16,
     .refusal =
         [](const assay_paged_params &p) {
           const bool one = p.num_qo_heads == p.num_kv_heads;
           return one || p.num_qo_heads == 8 * p.num_kv_heads ? nullptr : "group sizes 1 and 8";
         }},
    {.name = "no_lse",
     .kv = ASSAY_BF16,
     .refusal = [](const assay_paged_params &p) { return p.lse ? "writes no LSE" : nullptr; }},
    {.name = "needs_lse_in_base_2",
     .kv = ASSAY_BF16,
     .refusal =
         [](const assay_paged_params &p) {
           return p.lse && p.lse_base == ASSAY_LSE_BASE_2 ? nullptr : "LSE in base 2 is needed";
         }},
    {.name = "needs_sinks",
     .kv = ASSAY_BF16,
     .features = Features::kAll,
     .refusal = [](const assay_paged_params &p) { return p.sinks ? nullptr : "sinks are needed"; }},
    {.name = "needs_window",
     .kv = ASSAY_BF16,
     .features = Features::kWindow,
     .refusal =
         [](const assay_paged_params &p) {
           return p.window_left >= 0 ? nullptr : "a window is needed";
         }},
    {.name = "four_query_tokens",
     .kv = ASSAY_BF16,
     .features = Features::kAll,
     .refusal =
         [](const assay_paged_params &p) { return p.q_len == 4 ? nullptr : "4 query tokens"; }},
    {.name = "keys_to_1024",
     .kv = ASSAY_BF16,
     .refusal =
         [](const assay_paged_params &p) {
           return int64_t{p.kv.max_pages} * p.kv.page_size > 1024 ? "at most 1024 keys" : nullptr;
         }},
    {.name = "q_at_256_bytes",
     .kv = ASSAY_BF16,
     .refusal =
         [](const assay_paged_params &p) {
           return reinterpret_cast<uintptr_t>(p.q) % 256 ? "q is not 256-byte aligned" : nullptr;
         }},
    {.name = "heads_before_tokens", .kv = ASSAY_BF16, .refusal = hnd_only},
    {.name = "dense_strides", .kv = ASSAY_BF16, .refusal = dense_only},
    {.name = "one_model",
     .kv = ASSAY_BF16,
     .head_dim = 128,
     .page_size = 16,
     .refusal = one_model}};
inline constexpr size_t kCount = std::size(kStyles);

} // namespace assay::narrow
