// SPDX-License-Identifier: Apache-2.0
#include "kernels/bench/verify/verify_cascade.h"

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
          .o = p.out,
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

} // namespace

Verification verify_cascade(const TimedCascade &call, const Memory &memory, const Judge &judge) {
  Verification out;
  const std::vector<int32_t> lengths = request_lengths(call);
  const CheckedOutputs checked = checked_outputs(call, lengths);
  check_outputs(checked, memory, out);
  const assay_cascade_params &p = call.params;
  assay_cascade_params host = p;
  host.levels = call.levels.data();
  judge({call.kernel, p.target, &p, &host, p.out, p.lse,
         sampled_rows(lengths, 1, p.num_qo_heads, p.num_kv_heads),
         named_by(checked, p.num_qo_heads)},
        memory, out);
  return out;
}

} // namespace assay::bench
