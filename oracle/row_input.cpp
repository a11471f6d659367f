// SPDX-License-Identifier: Apache-2.0
#include "oracle/row_input.h"

#include <algorithm>
#include <cmath>
#include <stdexcept>

#include "oracle/dtype.h"

namespace assay::oracle {
namespace {

void append_row(const assay_paged_kv &kv, assay_dtype dtype, int row, int head, KeySet &keys) {
  const int64_t length = kv.seq_lens[row];
  if (length < 0 || length > static_cast<int64_t>(kv.max_pages) * kv.page_size) {
    throw std::invalid_argument("oracle: seq_lens entry outside its page table");
  }
  for (int64_t token = 0; token < length; ++token) {
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

template <class Params>
std::vector<float> query_of(const Params &params, int request, int head) {
  const int64_t at = request * params.q_stride_batch + head * params.q_stride_head;
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

void KeySet::finish(assay_dtype dtype) {
  const Format &format = format_of(dtype);
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

KeySet gather_paged(const assay_paged_params &params, int request, int kv_head) {
  KeySet keys;
  keys.head_dim = params.head_dim;
  append_row(params.kv, params.dtype, request, kv_head, keys);
  keys.finish(params.dtype);
  return keys;
}

KeySet gather_cascade(const assay_cascade_params &params, int request, int kv_head) {
  KeySet keys;
  keys.head_dim = params.head_dim;
  for (int l = 0; l < params.num_levels; ++l) {
    const int segment = segment_of(params.levels[l], request);
    if (segment >= 0) append_row(params.levels[l].kv, params.dtype, segment, kv_head, keys);
  }
  keys.finish(params.dtype);
  return keys;
}

std::vector<float> gather_query(const assay_paged_params &params, int request, int qo_head) {
  return query_of(params, request, qo_head);
}

std::vector<float> gather_query(const assay_cascade_params &params, int request, int qo_head) {
  return query_of(params, request, qo_head);
}

} // namespace assay::oracle
