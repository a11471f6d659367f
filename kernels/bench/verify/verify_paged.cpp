// SPDX-License-Identifier: Apache-2.0
#include "kernels/bench/verify/verify_paged.h"

#include <algorithm>

#include <fmt/format.h>

namespace assay::bench {
namespace {

int bytes_of(assay_dtype dtype) { return dtype == ASSAY_E4M3 || dtype == ASSAY_E5M2 ? 1 : 2; }

/// "request 3 head 5" of a row of a dense output.
std::string row_name(const assay_paged_params &p, int64_t row) {
  const int64_t query = row / p.num_qo_heads;
  return fmt::format("request {}{} head {}", query / p.q_len,
                     p.q_len > 1 ? fmt::format(" token {}", query % p.q_len) : "",
                     row % p.num_qo_heads);
}

RowIs row_is(const TimedCall &call, int64_t row) {
  const assay_paged_params &p = call.params;
  const int64_t query = row / p.num_qo_heads;
  if (call.seq_lens[query / p.q_len] - p.q_len + query % p.q_len >= 0) return RowIs::kFinite;
  return p.sinks == nullptr ? RowIs::kEmpty : RowIs::kEmptyButSink;
}

CheckedOutputs checked_outputs(const TimedCall &call) {
  const assay_paged_params &p = call.params;
  return {.dtype = p.dtype,
          .rows = int64_t{p.batch} * p.q_len * p.num_qo_heads,
          .head_dim = p.head_dim,
          .o = p.o,
          .lse = p.lse,
          .workspace = p.workspace,
          .workspace_bytes = p.workspace_bytes,
          .run = call.run,
          .row_name = [&](int64_t row) { return row_name(p, row); },
          .row_is = [&](int64_t row) { return row_is(call, row); }};
}

std::vector<float> read_floats(const Memory &memory, const float *from, int64_t first, int n) {
  if (from == nullptr) return {};
  std::vector<float> out(n);
  memory.read(out.data(), from + first, n * sizeof(float), n * sizeof(float), 1);
  return out;
}

const float *or_null(const std::vector<float> &v) { return v.empty() ? nullptr : v.data(); }

/// The query rows of the group: q, o and lse, each dense [q_len, group, ...].
void sample_queries(const TimedCall &call, const Memory &memory, const Outputs &outputs,
                    SampledRows &to) {
  const assay_paged_params &p = call.params;
  const int group = p.num_qo_heads / p.num_kv_heads, first = to.kv_head * group;
  const size_t row = static_cast<size_t>(p.head_dim) * 2;
  to.q.resize(p.q_len * group * row);
  for (int token = 0; token < p.q_len; ++token) {
    const int64_t at =
        to.request * p.q_stride_batch + token * p.q_stride_token + first * p.q_stride_head;
    memory.read(to.q.data() + token * group * row, static_cast<const uint16_t *>(p.q) + at, row,
                p.q_stride_head * 2, group);
    const int64_t out = (int64_t{to.request} * p.q_len + token) * p.num_qo_heads + first;
    const auto *o = reinterpret_cast<const std::byte *>(outputs.o()) + out * row;
    to.o.insert(to.o.end(), o, o + group * row);
    to.lse.insert(to.lse.end(), outputs.lse() + out, outputs.lse() + out + group);
  }
}

std::unique_ptr<SampledRows> sample(const TimedCall &call, const Memory &memory,
                                    const Outputs &outputs, int request, int kv_head) {
  const assay_paged_params &p = call.params;
  const int group = p.num_qo_heads / p.num_kv_heads;
  auto rows = std::make_unique<SampledRows>();
  SampledRows &to = *rows;
  to.request = request;
  to.kv_head = kv_head;
  to.len = call.seq_lens[request];
  sample_queries(call, memory, outputs, to);
  const PagedTokens tokens = {call.page_table.data() + request * p.kv.page_table_stride,
                              p.kv.page_size, to.len};
  const int size = bytes_of(p.kv_dtype);
  to.k = gather_tokens(memory, tokens, p.kv.k, kv_head * p.kv.k_stride_head, p.kv.k_stride_page,
                       p.kv.k_stride_token, p.head_dim, size);
  to.v = gather_tokens(memory, tokens, p.kv.v, kv_head * p.kv.v_stride_head, p.kv.v_stride_page,
                       p.kv.v_stride_token, p.head_dim, size);
  to.k_scale = read_floats(memory, p.k_scale, kv_head * p.k_scale_stride, 1);
  to.v_scale = read_floats(memory, p.v_scale, kv_head * p.v_scale_stride, 1);
  to.slopes = read_floats(memory, p.alibi_slopes, kv_head * group, group);
  to.sinks = read_floats(memory, p.sinks, kv_head * group, group);
  const int64_t d = p.head_dim, page = std::max(to.len, 1);
  to.params = p;
  to.params.batch = to.params.num_kv_heads = 1;
  to.params.num_qo_heads = group;
  to.params.q = to.q.data();
  to.params.o = to.o.data();
  to.params.lse = to.lse.data();
  to.params.q_stride_batch = to.params.o_stride_batch = p.q_len * group * d;
  to.params.q_stride_token = to.params.o_stride_token = group * d;
  to.params.q_stride_head = to.params.o_stride_head = d;
  to.params.lse_stride_batch = p.q_len * group;
  to.params.lse_stride_token = group;
  to.params.lse_stride_head = 1;
  assay_paged_kv &kv = to.params.kv;
  kv.k = to.k.data();
  kv.v = to.v.data();
  kv.k_stride_page = kv.v_stride_page = kv.k_stride_head = kv.v_stride_head = page * d;
  kv.k_stride_token = kv.v_stride_token = d;
  kv.page_table = &to.page;
  kv.seq_lens = &to.len;
  kv.page_table_stride = kv.rows = kv.max_pages = 1;
  kv.page_size = static_cast<int32_t>(page);
  to.params.k_scale = or_null(to.k_scale);
  to.params.v_scale = or_null(to.v_scale);
  to.params.alibi_slopes = or_null(to.slopes);
  to.params.sinks = or_null(to.sinks);
  to.params.workspace = to.params.plan = to.params.stream = nullptr;
  return rows;
}

} // namespace

Verification verify_call(const TimedCall &call, const Memory &memory, const PagedJudge &judge) {
  Verification out;
  const Outputs first = check_outputs(checked_outputs(call), memory, out);
  std::vector<std::unique_ptr<SampledRows>> rows;
  for (int request : sample_requests(call.seq_lens))
    for (int head : sample_heads(request, call.params.num_kv_heads))
      rows.push_back(sample(call, memory, first, request, head));
  judge(call, rows, out);
  return out;
}

} // namespace assay::bench
