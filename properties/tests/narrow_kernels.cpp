// SPDX-License-Identifier: Apache-2.0
#include "properties/tests/narrow_kernels.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <utility>

#include "oracle/exact/dtype.h"
#include "properties/tests/narrow_row.h"
#include "properties/tests/narrow_styles.h"

namespace assay::narrow {
namespace {

thread_local const char *last_reason = "";
const char *last_error() { return last_reason; }

const char *refusal(const Style &s, const assay_paged_params &p) {
  const assay_dtype kv = s.kv == kAny && p.kv_dtype != p.dtype ? ASSAY_E4M3 : s.kv;
  const bool features = p.logits_soft_cap > 0 || p.alibi_slopes || p.sinks || p.q_len > 1;
  const bool asked = s.parts == Parts::kAsked || s.parts == Parts::kAskedOrByBatch;
  if (p.dtype != ASSAY_BF16 && p.dtype != ASSAY_FP16) return "no such dtype";
  if (s.dtype != kAny && p.dtype != s.dtype) return "built for one dtype";
  if (kv != kAny && p.kv_dtype != kv) return "built for one KV dtype";
  if (s.head_dim > 0 && p.head_dim != s.head_dim) return "built for one head_dim";
  if (p.head_dim > kMaxHeadDim) return "no larger head_dim than 256";
  if (s.page_size > 0 && p.kv.page_size != s.page_size) return "built for one page size";
  if (s.group > 0 && p.num_qo_heads != s.group * p.num_kv_heads) return "built for one group size";
  if (s.features != Features::kAll && features) return "plain attention only";
  if (s.features == Features::kPlain && p.window_left >= 0) return "no window";
  if (!s.without_lse && !p.lse) return "writes the LSE";
  if (s.splits > 0 && asked && p.num_splits > s.splits) return "fewer splits";
  const bool lengths = !s.without_keys && p.kv.seq_lens != nullptr;
  if (lengths && std::any_of(p.kv.seq_lens, p.kv.seq_lens + p.batch, [](int n) { return n < 1; }))
    return "a request without keys";
  if (int64_t{p.kv.max_pages} * p.kv.page_size > kMaxKeys) return "no more than 4,096 keys";
  return s.refusal ? s.refusal(p) : nullptr;
}

template <size_t kIndex>
assay_status supports(const void *params) {
  const char *reason = refusal(kStyles[kIndex], *static_cast<const assay_paged_params *>(params));
  last_reason = reason ? reason : "";
  return reason ? ASSAY_UNSUPPORTED : ASSAY_OK;
}

template <size_t kIndex>
assay_status run(const void *params) {
  const auto &p = *static_cast<const assay_paged_params *>(params);
  for (int b = 0; b < p.batch; ++b)
    for (int token = 0; token < tokens_of(p, b); ++token)
      for (int h = 0; h < p.num_qo_heads; ++h)
        run_row(kStyles[kIndex], p, b, token, h);
  return ASSAY_OK;
}

/// The keys of every request in tiles, oldest first.
template <size_t kIndex>
assay_status key_order(const void *params, assay_key_tile *tiles, int64_t capacity,
                       int64_t *first) {
  const auto &p = *static_cast<const assay_paged_params *>(params);
  const int step = kStyles[kIndex].tile;
  int64_t count = first[0] = 0;
  for (int b = 0; b < p.batch; first[++b] = count)
    for (int begin = 0; begin < p.kv.seq_lens[b]; begin += step, ++count)
      if (count < capacity)
        tiles[count] = {0, 0, 0, begin, std::min(begin + step, p.kv.seq_lens[b]), 0};
  return ASSAY_OK;
}

assay_arithmetic declare(const Style &s) {
  assay_arithmetic a{};
  a.p_format = s.p;
  a.sum_format = s.sum;
  a.exponential = s.natural ? ASSAY_EXP_NATURAL : ASSAY_EXP_BASE2;
  a.sum_depth = s.tree ? static_cast<int>(std::ceil(std::log2(s.tile))) : s.tile;
  const oracle::Format *q = oracle::rounding_of(s.q, ASSAY_FP16);
  a.q_abs_error = q ? 0.51 * q->unit_roundoff : s.scaled_q ? 0x1p-8 : 0.0;
  a.exp2_rel_error = a.rcp_rel_error = 0x1p-23;
  a.log2_abs_error = a.tanh_abs_error = 0x1p-22;
  a.tile_tokens = s.tile;
  a.max_parallel_states = s.states;
  a.max_splits = s.splits;
  a.merge_stages = s.splits > 0;
  a.score_format = s.score;
  a.partial_format = s.partial;
  a.stored_merges = s.partial != ASSAY_FORMAT_FP32;
  a.accumulator = s.fp64 ? ASSAY_ACCUMULATOR_FP64 : ASSAY_ACCUMULATOR_FP32;
  return a;
}

template <size_t kIndex>
assay_kernel entry() {
  const Style &s = kStyles[kIndex];
  assay_kernel k{};
  k.struct_size = sizeof k;
  k.name = s.name;
  k.family = ASSAY_FAMILY_PAGED;
  k.target = ASSAY_TARGET_SIMT;
  k.determinism = s.any_order ? ASSAY_DETERMINISM_NONE : ASSAY_DETERMINISM_RUN_TO_RUN;
  k.batch_invariance = s.parts == Parts::kAskedOrByBatch           ? ASSAY_BATCH_FIXED
                       : s.any_order || s.parts == Parts::kByBatch ? ASSAY_BATCH_NONE
                                                                   : ASSAY_BATCH_ALWAYS;
  k.nan_contract = ASSAY_NAN_VALUES | ASSAY_NAN_SCORES;
  k.arithmetic = declare(s);
  k.supports = &supports<kIndex>;
  k.run = &run<kIndex>;
  k.last_error = &last_error;
  if (s.ordered) k.key_order = &key_order<kIndex>;
  k.capabilities = s.ragged ? ASSAY_RAGGED_QUERIES : 0;
  return k;
}

template <size_t... kIndices>
std::array<assay_kernel, kCount> table(std::index_sequence<kIndices...>) {
  return {entry<kIndices>()...};
}

} // namespace

const assay_plugin &plugin() {
  static const auto kKernels = table(std::make_index_sequence<kCount>());
  static const assay_plugin kPlugin = {
      sizeof(assay_plugin),         ASSAY_ABI_MAJOR, ASSAY_ABI_MINOR, "narrow",
      static_cast<int32_t>(kCount), kKernels.data()};
  return kPlugin;
}

} // namespace assay::narrow
