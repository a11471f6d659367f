// SPDX-License-Identifier: Apache-2.0
#include "oracle/exact/row_input.h"

#include <algorithm>
#include <cmath>
#include <stdexcept>

#include "oracle/exact/dtype.h"

namespace assay::oracle {
namespace {

void append_row(const assay_paged_kv &kv, assay_dtype dtype, int row, int head, KeyRange range,
                KeySet &keys) {
  for (int64_t token = range.begin; token < range.end; ++token) {
    const int64_t page = kv.page_table[row * kv.page_table_stride + token / kv.page_size];
    const int64_t slot = token % kv.page_size;
    const int64_t k_at =
        page * kv.k_stride_page + slot * kv.k_stride_token + head * kv.k_stride_head;
    const int64_t v_at =
        page * kv.v_stride_page + slot * kv.v_stride_token + head * kv.v_stride_head;
    for (int i = 0; i < keys.head_dim; ++i)
      keys.k.push_back(load_element(dtype, kv.k, k_at + i));
    for (int i = 0; i < keys.head_dim; ++i)
      keys.v.push_back(load_element(dtype, kv.v, v_at + i));
  }
}

int length_of(const assay_paged_kv &kv, int row) {
  const int64_t length = kv.seq_lens[row];
  if (length < 0 || length > static_cast<int64_t>(kv.max_pages) * kv.page_size) {
    throw std::invalid_argument("oracle: seq_lens entry outside its page table");
  }
  return static_cast<int>(length);
}

template <class Params>
std::vector<float> query_at(const Params &params, int64_t at) {
  std::vector<float> q(static_cast<size_t>(params.head_dim));
  for (int i = 0; i < params.head_dim; ++i)
    q[i] = load_element(params.dtype, params.q, at + i);
  return q;
}

// The segment of a level that serves a request, or -1.
int segment_of(const assay_cascade_level &level, int request) {
  for (int s = 0; s < level.kv.rows; ++s) {
    if (level.segment_indptr[s] <= request && request < level.segment_indptr[s + 1]) return s;
  }
  return -1;
}

} // namespace

void KeySet::finish(assay_dtype operand) {
  const Format &format = format_of(operand);
  k_subnormal.assign(size(), 0);
  for (size_t at = 0; at < k.size(); ++at) {
    finite = finite && std::isfinite(k[at]);
    if (is_subnormal(format, k[at])) k_subnormal[at / static_cast<size_t>(head_dim)] = 1;
  }
  v_min.assign(static_cast<size_t>(head_dim), INFINITY);
  v_max.assign(static_cast<size_t>(head_dim), -INFINITY);
  for (size_t at = 0; at < v.size(); ++at) {
    const size_t i = at % static_cast<size_t>(head_dim);
    finite = finite && std::isfinite(v[at]);
    v_subnormal = v_subnormal || is_subnormal(format, v[at]);
    v_min[i] = std::min<double>(v_min[i], v[at]);
    v_max[i] = std::max<double>(v_max[i], v[at]);
  }
}

KeySet KeySet::with_sink(assay_dtype operand) const {
  KeySet keys = *this;
  keys.sink = true;
  keys.k.resize(k.size() + static_cast<size_t>(head_dim), 0.0f);
  keys.v.resize(v.size() + static_cast<size_t>(head_dim), 0.0f);
  keys.finish(operand);
  return keys;
}

bool RowFeatures::has_sink() const { return sinks && sink > -INFINITY; }

assay_dtype operand_dtype(assay_dtype dtype, bool fp8) { return fp8 ? ASSAY_FP16 : dtype; }

KeyRange visible_keys(const assay_paged_params &params, int row) {
  const int length = length_of(params.kv, row / params.q_len);
  const int position = length - params.q_len + row % params.q_len;
  if (position < 0) return {};
  const int oldest = params.window > 0 ? position - params.window + 1 : 0;
  return {std::max(0, oldest), position + 1};
}

KeySet gather_paged(const assay_paged_params &params, int row, int kv_head) {
  KeySet keys;
  keys.head_dim = params.head_dim;
  append_row(params.kv, params.kv_dtype, row / params.q_len, kv_head, visible_keys(params, row),
             keys);
  keys.finish(operand_dtype(params.dtype, is_fp8(params.kv_dtype)));
  return keys;
}

RowFeatures gather_features(const assay_paged_params &params, int qo_head) {
  RowFeatures features;
  const int kv_head = qo_head / (params.num_qo_heads / params.num_kv_heads);
  features.fp8 = is_fp8(params.kv_dtype);
  if (features.fp8 && params.k_scale != nullptr)
    features.k_scale = params.k_scale[kv_head * params.k_scale_stride];
  if (features.fp8 && params.v_scale != nullptr)
    features.v_scale = params.v_scale[kv_head * params.v_scale_stride];
  features.softcap = params.logits_softcap;
  features.alibi = params.alibi_slopes != nullptr;
  if (features.alibi) features.slope = params.alibi_slopes[qo_head];
  features.sinks = params.sinks != nullptr;
  if (features.sinks) features.sink = params.sinks[qo_head];
  return features;
}

RowFeatures gather_features(const assay_cascade_params &, int) { return {}; }

int level_length(const assay_cascade_params &params, int level, int request) {
  const int segment = segment_of(params.levels[level], request);
  return segment < 0 ? 0 : length_of(params.levels[level].kv, segment);
}

KeySet gather_cascade(const assay_cascade_params &params, int request, int kv_head) {
  KeySet keys;
  keys.head_dim = params.head_dim;
  for (int l = 0; l < params.num_levels; ++l) {
    const assay_paged_kv &kv = params.levels[l].kv;
    const int segment = segment_of(params.levels[l], request);
    if (segment < 0) continue;
    append_row(kv, params.dtype, segment, kv_head, {0, length_of(kv, segment)}, keys);
  }
  keys.finish(params.dtype);
  return keys;
}

std::vector<float> gather_query(const assay_paged_params &params, int row, int qo_head) {
  return query_at(params, row / params.q_len * params.q_stride_batch +
                              row % params.q_len * params.q_stride_token +
                              qo_head * params.q_stride_head);
}

std::vector<float> gather_query(const assay_cascade_params &params, int request, int qo_head) {
  return query_at(params, request * params.q_stride_batch + qo_head * params.q_stride_head);
}

} // namespace assay::oracle
