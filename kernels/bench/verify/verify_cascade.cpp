// SPDX-License-Identifier: Apache-2.0
#include "kernels/bench/verify/verify_cascade.h"

#include <algorithm>

#include <fmt/format.h>

namespace assay::bench {
namespace {

/// The segment of a level that serves the request, or -1.
int segment_of(const assay_cascade_level &level, int request) {
  for (int s = 0; s < level.kv.rows; ++s)
    if (level.segment_indptr[s] <= request && request < level.segment_indptr[s + 1]) return s;
  return -1;
}

int32_t tokens_of(const assay_cascade_level &level, int request) {
  const int segment = segment_of(level, request);
  return segment < 0 ? 0 : level.kv.seq_lens[segment];
}

/// Keys of every request, on all levels.
std::vector<int32_t> request_lengths(const TimedCascade &call) {
  std::vector<int32_t> lengths(call.params.batch);
  for (int request = 0; request < call.params.batch; ++request)
    for (const assay_cascade_level &level : call.levels)
      lengths[request] += tokens_of(level, request);
  return lengths;
}

CheckedOutputs checked_outputs(const TimedCascade &call, const std::vector<int32_t> &lengths) {
  const assay_cascade_params &p = call.params;
  return {.dtype = p.dtype,
          .rows = int64_t{p.batch} * p.num_qo_heads,
          .head_dim = p.head_dim,
          .o = p.o,
          .lse = p.lse,
          .workspace = p.workspace,
          .workspace_bytes = p.workspace_bytes,
          .run = call.run,
          .row_name =
              [&](int64_t row) {
                return fmt::format("request {} head {}", row / p.num_qo_heads,
                                   row % p.num_qo_heads);
              },
          .row_is =
              [&](int64_t row) {
                return lengths[row / p.num_qo_heads] > 0 ? RowIs::kFinite : RowIs::kEmpty;
              }};
}

SampledLevel sample_level(const TimedCascade &call, const Memory &memory,
                          const assay_cascade_level &level, int request, int kv_head) {
  const assay_paged_kv &kv = level.kv;
  SampledLevel to;
  to.len = tokens_of(level, request);
  const int segment = std::max(segment_of(level, request), 0);
  const PagedTokens tokens = {kv.page_table + segment * kv.page_table_stride, kv.page_size, to.len};
  const int d = call.params.head_dim;
  to.k = gather_tokens(memory, tokens, kv.k, kv_head * kv.k_stride_head, kv.k_stride_page,
                       kv.k_stride_token, d, sizeof(uint16_t));
  to.v = gather_tokens(memory, tokens, kv.v, kv_head * kv.v_stride_head, kv.v_stride_page,
                       kv.v_stride_token, d, sizeof(uint16_t));
  return to;
}

/// The segment as a level of one request.
assay_cascade_level level_of(const SampledLevel &from, int head_dim) {
  const int32_t page = std::max(from.len, 1);
  assay_cascade_level level{};
  level.segment_indptr = from.indptr;
  assay_paged_kv &kv = level.kv;
  kv.k = from.k.data();
  kv.v = from.v.data();
  kv.k_stride_page = kv.v_stride_page = kv.k_stride_head = kv.v_stride_head =
      int64_t{page} * head_dim;
  kv.k_stride_token = kv.v_stride_token = head_dim;
  kv.page_table = &from.page;
  kv.seq_lens = &from.len;
  kv.page_table_stride = kv.rows = kv.max_pages = 1;
  kv.page_size = page;
  return level;
}

std::unique_ptr<SampledCascadeRows> sample(const TimedCascade &call, const Memory &memory,
                                           const Outputs &outputs, int request, int kv_head) {
  const assay_cascade_params &p = call.params;
  const int group = p.num_qo_heads / p.num_kv_heads, first = kv_head * group;
  const int64_t d = p.head_dim, row = d * sizeof(uint16_t);
  auto rows = std::make_unique<SampledCascadeRows>();
  SampledCascadeRows &to = *rows;
  to.request = request;
  to.kv_head = kv_head;
  to.q.resize(group * row);
  memory.read(to.q.data(),
              static_cast<const uint16_t *>(p.q) + request * p.q_stride_batch +
                  first * p.q_stride_head,
              row, p.q_stride_head * sizeof(uint16_t), group);
  const int64_t at = int64_t{request} * p.num_qo_heads + first;
  const auto *o = reinterpret_cast<const std::byte *>(outputs.o() + at * d);
  to.o.assign(o, o + group * row);
  to.lse.assign(outputs.lse() + at, outputs.lse() + at + group);
  for (const assay_cascade_level &level : call.levels)
    to.segments.push_back(sample_level(call, memory, level, request, kv_head));
  for (const SampledLevel &segment : to.segments)
    to.levels.push_back(level_of(segment, p.head_dim));
  to.params = p;
  to.params.batch = to.params.num_kv_heads = 1;
  to.params.num_qo_heads = group;
  to.params.q = to.q.data();
  to.params.o = to.o.data();
  to.params.lse = to.lse.data();
  to.params.q_stride_batch = to.params.o_stride_batch = group * d;
  to.params.q_stride_head = to.params.o_stride_head = d;
  to.params.lse_stride_batch = group;
  to.params.lse_stride_head = 1;
  to.params.levels = to.levels.data();
  to.params.workspace = to.params.stream = nullptr;
  return rows;
}

} // namespace

Verification verify_cascade(const TimedCascade &call, const Memory &memory,
                            const CascadeJudge &judge) {
  Verification out;
  const std::vector<int32_t> lengths = request_lengths(call);
  const Outputs first = check_outputs(checked_outputs(call, lengths), memory, out);
  std::vector<std::unique_ptr<SampledCascadeRows>> rows;
  for (int request : sample_requests(lengths))
    for (int head : sample_heads(request, call.params.num_kv_heads))
      rows.push_back(sample(call, memory, first, request, head));
  judge(call, rows, out);
  return out;
}

} // namespace assay::bench
