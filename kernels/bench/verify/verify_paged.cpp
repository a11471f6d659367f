// SPDX-License-Identifier: Apache-2.0
#include "kernels/bench/verify/verify_paged.h"

#include <fmt/format.h>

namespace assay::bench {
namespace {

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
          .o = p.out,
          .lse = p.lse,
          .workspace = p.workspace,
          .workspace_bytes = p.workspace_bytes,
          .run = call.run,
          .row_name = [&](int64_t row) { return row_name(p, row); },
          .row_is = [&](int64_t row) { return row_is(call, row); }};
}

} // namespace

Verification verify_call(const TimedCall &call, const Memory &memory, const Judge &judge) {
  Verification out;
  const CheckedOutputs checked = checked_outputs(call);
  check_outputs(checked, memory, out);
  const assay_paged_params &p = call.params;
  assay_paged_params host = p;
  host.kv.seq_lens = call.seq_lens.data();
  host.kv.page_table = call.page_table.data();
  judge({call.kernel, p.target, &p, &host, p.out, p.lse,
         sampled_rows(call.seq_lens, p.q_len, p.num_qo_heads, p.num_kv_heads),
         named_by(checked, p.num_qo_heads)},
        memory, out);
  return out;
}

} // namespace assay::bench
