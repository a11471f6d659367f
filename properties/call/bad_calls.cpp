// SPDX-License-Identifier: Apache-2.0
#include "properties/call/bad_calls.h"

#include <limits>
#include <utility>

#include <fmt/format.h>

#include "properties/call/bad_merges.h"
#include "properties/call/oversized_call.h"

namespace assay {
namespace {

using Kind = BadCall::Kind;

constexpr float kNan = std::numeric_limits<float>::quiet_NaN();
constexpr float kInf = std::numeric_limits<float>::infinity();

void corrupt_kv(const CallCorruptor &corrupt, const std::string &prefix, assay_paged_kv &kv,
                int64_t multiple) {
  const auto name = [&](const char *field) { return prefix + "." + field; };
  const auto stride = [&](const char *field, int64_t &value, bool head) {
    corrupt.stride(name(field), value, multiple);
    if (!head) corrupt.set(name(field), value, int64_t{1} << 31);
  };
  stride("k_stride_page", kv.k_stride_page, false);
  stride("k_stride_token", kv.k_stride_token, false);
  stride("k_stride_head", kv.k_stride_head, true);
  stride("v_stride_page", kv.v_stride_page, false);
  stride("v_stride_token", kv.v_stride_token, false);
  stride("v_stride_head", kv.v_stride_head, true);
  corrupt.set(name("page_table_stride"), kv.page_table_stride, int64_t{kv.max_pages} - 1);
  corrupt.set(name("page_table_stride_head"), kv.page_table_stride_head, int64_t{-1});
  const CallCorruptor shape = corrupt.of_shape();
  shape.set(name("max_pages"), kv.max_pages, -1);
  shape.range(name("page_size"), kv.page_size, 1, kMaxTokens);
  shape.set(name("reserved"), kv.reserved[0], 1);
  shape.set(name("reserved"), std::end(kv.reserved)[-1], 1);
  constexpr auto kHalf = static_cast<int32_t>(kMaxTokens / 2 + 1);
  if (kv.max_pages > 1)
    shape.with(
        kv.page_size, kHalf,
        {name("page_size"), Kind::kTogether,
         fmt::format("{} above 2^30: {} tokens a page", name("max_pages * page_size"), kHalf)});
  if (kv.rows == 0) return;
  corrupt.pointer(name("seq_lens"), kv.seq_lens, 4, false);
  if (kv.max_pages == 0) return;
  corrupt.pointer(name("k"), kv.k, 16, false);
  corrupt.pointer(name("v"), kv.v, 16, false);
  corrupt.pointer(name("page_table"), kv.page_table, 4, false);
}

/// Sizes and types that paged attention and cascades have alike, but for the batch.
template <class Params>
void corrupt_heads(const CallCorruptor &all, Params &p) {
  const CallCorruptor corrupt = all.of_shape();
  corrupt.set_all("dtype", p.dtype, {-1, ASSAY_FP32, ASSAY_E4M3});
  corrupt.set("num_kv_heads", p.num_kv_heads, 0);
  corrupt.set("num_kv_heads", p.num_kv_heads, -1);
  corrupt.set("num_qo_heads", p.num_qo_heads, 0);
  if (p.num_kv_heads > 1) corrupt.set("num_qo_heads", p.num_qo_heads, p.num_qo_heads + 1);
  constexpr auto kTooMany = static_cast<int32_t>(kMaxHeads + 1);
  corrupt.both(p.num_qo_heads, kTooMany, p.num_kv_heads, kTooMany,
               {"num_qo_heads", Kind::kValue, "2^20 + 1 heads"});
  corrupt.set_all("head_dim", p.head_dim, {-64, 0, 32, 63, 96, 160, 192, 512});
  corrupt.set_all("sm_scale", p.sm_scale, {0.0f, -1.0f, kNan, kInf});
}

/// What else they have alike.
template <class Params>
void corrupt_attention(const CallCorruptor &corrupt, Params &p, const CallTraits &traits) {
  corrupt_header(corrupt, p);
  corrupt_heads(corrupt, p);
  corrupt.stride("q_stride_head", p.q_stride_head, 8);
  if (p.batch == 0) return; // with nothing to write
  corrupt.output_stride("out_stride_head", p.out_stride_head, 8, p.num_qo_heads, p.head_dim);
  if (p.lse != nullptr)
    corrupt.output_stride("lse_stride_head", p.lse_stride_head, 1, p.num_qo_heads, 1);
  if (traits.scratch_bytes > 0) {
    corrupt.pointer("workspace", p.workspace, 16, false);
    corrupt.set("workspace_bytes", p.workspace_bytes, traits.scratch_bytes - 1);
  }
  corrupt.pointer("q", p.q, 16, false);
  corrupt.pointer("out", p.out, 16, false);
  corrupt.pointer("lse", p.lse, 4, true);
}

template <class Params>
void corrupt_batch_strides(const CallCorruptor &corrupt, Params &p) {
  corrupt.stride("q_stride_batch", p.q_stride_batch, 8);
  if (p.batch == 0) return;
  corrupt.output_stride("out_stride_batch", p.out_stride_batch, 8, p.batch, p.head_dim);
  if (p.lse != nullptr)
    corrupt.output_stride("lse_stride_batch", p.lse_stride_batch, 1, p.batch, 1);
}

void corrupt_batch(const CallCorruptor &all, assay_paged_params &p) {
  const CallCorruptor corrupt = all.of_shape();
  for (const int32_t wrong : {-1, static_cast<int32_t>(kMaxRows + 1)})
    corrupt.both(p.batch, wrong, p.kv.rows, wrong,
                 {"batch", Kind::kValue, fmt::format("batch and kv.rows are {}", wrong)});
  corrupt.with(p.kv.rows, p.kv.rows + 1,
               {"kv.rows", Kind::kTogether, "kv.rows is one more than batch"});
}

void corrupt_tokens(const CallCorruptor &corrupt, assay_paged_params &p) {
  corrupt.of_shape().range("q_len", p.q_len, 1, ASSAY_MAX_Q_LEN);
  if (p.qo_indptr == nullptr) corrupt_batch_strides(corrupt, p);
  if (p.batch == 0) return;
  corrupt.pointer("qo_indptr", p.qo_indptr, 4, true);
  const int64_t tokens = p.qo_indptr != nullptr ? int64_t{p.batch} * p.q_len : p.q_len;
  if (p.qo_indptr == nullptr && p.q_len == 1) return;
  corrupt.stride("q_stride_token", p.q_stride_token, 8);
  corrupt.output_stride("out_stride_token", p.out_stride_token, 8, tokens, p.head_dim);
  if (p.lse != nullptr) corrupt.output_stride("lse_stride_token", p.lse_stride_token, 1, tokens, 1);
}

/// Corrupts the fields of a shard, which a kernel without shards does not read.
void corrupt_shard(const CallCorruptor &corrupt, assay_paged_params &p) {
  if (p.dcp_world_size == 0) return;
  const CallCorruptor shape = corrupt.of_shape();
  shape.set_all("dcp_world_size", p.dcp_world_size, {-1, 0, 1025});
  shape.range("dcp_rank", p.dcp_rank, 0, p.dcp_world_size - 1);
  shape.range("dcp_interleave", p.dcp_interleave, 1, kMaxTokens / p.dcp_world_size);
  shape.set("reserved", p.reserved, 1);
  if (p.batch > 0) corrupt.pointer("global_lens", p.global_lens, 4, false);
}

void corrupt_scales(const CallCorruptor &corrupt, assay_paged_params &p, bool fp8) {
  const CallCorruptor shape = corrupt.of_shape();
  if (fp8) {
    corrupt.pointer("k_scale", p.k_scale, 4, true);
    corrupt.pointer("v_scale", p.v_scale, 4, true);
    shape.range("k_scale_stride", p.k_scale_stride, 0, 1);
    shape.range("v_scale_stride", p.v_scale_stride, 0, 1);
  } else {
    const float *somewhere = reinterpret_cast<const float *>(p.kv.seq_lens);
    shape.with(p.k_scale, somewhere, {"k_scale", Kind::kTogether, "k_scale is given without fp8"});
    shape.with(p.v_scale, somewhere, {"v_scale", Kind::kTogether, "v_scale is given without fp8"});
  }
}

/// Exact numbers need a stream that holds them, and serve plain attention alone.
void corrupt_field(const CallCorruptor &all, assay_paged_params &p, bool fp8) {
  const CallCorruptor corrupt = all.of_shape();
  if (p.head_dim != 64) return;
  const assay_dtype cache = fp8 ? p.kv_dtype : ASSAY_FIELD61;
  const bool plain = p.q_len == 1 && p.qo_indptr == nullptr && p.window_left < 0 &&
                     p.logits_soft_cap == 0 && p.alibi_slopes == nullptr && p.sinks == nullptr;
  if (fp8 || !plain) {
    void *const stream = std::exchange(p.stream, p.out);
    corrupt.both(
        p.dtype, ASSAY_FIELD61, p.kv_dtype, cache,
        {"dtype", Kind::kTogether, "dtype is 64 (field61), with more than plain attention"});
    p.stream = stream;
  } else if (p.stream == nullptr) {
    corrupt.both(p.dtype, ASSAY_FIELD61, p.kv_dtype, cache,
                 {"dtype, stream", Kind::kTogether, "dtype is 64 (field61), without a stream"});
  }
}

/// The right call has no plan.
void corrupt_plan(const CallCorruptor &corrupt, assay_paged_params &p) {
  char *const somewhere = static_cast<char *>(p.out);
  corrupt.both(p.plan, somewhere + 8, p.plan_bytes, uint64_t{1} << 40,
               {"plan", Kind::kAlignment, "plan is not aligned to 16 bytes"});
  corrupt.both(p.plan, somewhere, p.plan_bytes, uint64_t{4},
               {"plan_bytes", Kind::kValue, "plan_bytes is 4"});
}

void corrupt_paged(const CallCorruptor &corrupt, assay_paged_params &p, const CallTraits &traits) {
  const bool fp8 = p.kv_dtype != p.dtype;
  corrupt_attention(corrupt, p, traits);
  corrupt_batch(corrupt, p);
  corrupt_tokens(corrupt, p);
  corrupt_shard(corrupt, p);
  corrupt_kv(corrupt, "kv", p.kv, fp8 ? 16 : 8);
  corrupt_scales(corrupt, p, fp8);
  corrupt_field(corrupt, p, fp8);
  const CallCorruptor shape = corrupt.of_shape();
  const assay_dtype other = p.dtype == ASSAY_FP16 ? ASSAY_BF16 : ASSAY_FP16;
  shape.set_all("kv_dtype", p.kv_dtype, {-1, other, ASSAY_FP32});
  shape.set_all("logits_soft_cap", p.logits_soft_cap, {-1.0f, kNan, kInf});
  shape.range("window_left", p.window_left, -1, kMaxTokens - 1);
  if (traits.splits) shape.range("num_splits", p.num_splits, 0, 1 << 16);
  shape.range("enable_pdl", p.enable_pdl, 0, 1);
  shape.range("even_lengths", p.even_lengths, 0, 1);
  corrupt.pointer("alibi_slopes", p.alibi_slopes, 4, true);
  corrupt.pointer("sinks", p.sinks, 4, true);
  if (p.batch == 0) return;
  if (traits.plans) corrupt_plan(corrupt, p);
  corrupt.alias("q", p.q, p.out, "out");
  if (p.kv.max_pages == 0) return;
  corrupt.alias("kv.k", p.kv.k, p.out, "out");
  corrupt.alias("kv.v", p.kv.v, p.out, "out");
}

void corrupt_cascade(const CallCorruptor &corrupt, AbiParams &params, const CallTraits &traits) {
  assay_cascade_params &p = params.cascade;
  corrupt_attention(corrupt, p, traits);
  corrupt_batch_strides(corrupt, p);
  const CallCorruptor shape = corrupt.of_shape();
  shape.range("batch", p.batch, 0, kMaxRows);
  shape.range("num_levels", p.num_levels, 1, ASSAY_MAX_CASCADE_LEVELS);
  shape.range("num_splits", p.num_splits, 0, 1 << 12);
  shape.set("reserved", p.reserved, 1);
  shape.pointer("levels", p.levels, alignof(assay_cascade_level), false);
  for (size_t l = 0; l < params.levels.size(); ++l) {
    assay_cascade_level &level = params.levels[l];
    const std::string name = fmt::format("levels[{}].", l);
    corrupt_kv(corrupt, name + "kv", level.kv, 8);
    shape.range(name + "kv.rows", level.kv.rows, 0, kMaxRows);
    shape.set(name + "reserved", level.reserved[2], 1);
    if (p.batch > 0 && level.kv.rows > 0)
      corrupt.pointer(name + "segment_indptr", level.segment_indptr, 4, false);
  }
}

} // namespace

const char *name_of(BadCall::Kind kind) {
  switch (kind) {
  case BadCall::Kind::kValue:
    return "value";
  case BadCall::Kind::kNull:
    return "null";
  case BadCall::Kind::kAlignment:
    return "alignment";
  case BadCall::Kind::kAlias:
    return "alias";
  case BadCall::Kind::kTogether:
    return "combination";
  }
  return "";
}

void for_each_bad_call(AbiParams &right, const CallTraits &traits, const AskBadCall &ask) {
  const CallCorruptor corrupt(ask);
  switch (right.family) {
  case Family::kPaged:
    return corrupt_paged(corrupt, right.paged, traits);
  case Family::kCascade:
    return corrupt_cascade(corrupt, right, traits);
  case Family::kMergeState:
    return corrupt_merge_state(corrupt, right.merge_state);
  case Family::kMergeStates:
    return corrupt_merge_states(corrupt, right.merge_states);
  }
}

} // namespace assay
