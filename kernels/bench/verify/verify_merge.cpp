// SPDX-License-Identifier: Apache-2.0
#include "kernels/bench/verify/verify_merge.h"

#include <fmt/format.h>

namespace assay::bench {
namespace {

CheckedOutputs checked_outputs(const TimedMerge &call) {
  return {.dtype = call.dtype,
          .rows = int64_t{call.rows} * call.num_heads,
          .head_dim = call.head_dim,
          .o = call.o,
          .lse = call.lse,
          .workspace = nullptr,
          .workspace_bytes = 0,
          .run = call.run,
          .row_name =
              [&](int64_t row) {
                return fmt::format("row {} head {}", row / call.num_heads, row % call.num_heads);
              },
          .row_is = [](int64_t) { return RowIs::kFinite; }};
}

std::unique_ptr<SampledMergeRow> sample(const TimedMerge &call, const Memory &memory,
                                        const Outputs &outputs, int row, int head) {
  const int64_t d = call.head_dim, row_bytes = d * sizeof(uint16_t);
  auto sampled = std::make_unique<SampledMergeRow>();
  SampledMergeRow &to = *sampled;
  to.row = row;
  to.head = head;
  to.o_in.resize(call.states * row_bytes);
  to.lse_in.resize(call.states);
  memory.read(to.o_in.data(),
              static_cast<const uint16_t *>(call.o_in) + row * call.o_in_stride_row + head * d,
              row_bytes, call.o_in_stride_state * sizeof(uint16_t), call.states);
  memory.read(to.lse_in.data(), call.lse_in + row * call.lse_in_stride_row + head, sizeof(float),
              call.lse_in_stride_state * sizeof(float), call.states);
  const int64_t at = int64_t{row} * call.num_heads + head;
  const auto *o = reinterpret_cast<const std::byte *>(outputs.o() + at * d);
  to.o.assign(o, o + row_bytes);
  to.lse = {outputs.lse()[at]};
  assay_merge_states_params &p = to.params;
  p.struct_size = sizeof p;
  p.target = call.target;
  p.dtype = call.dtype;
  p.lse_base = call.lse_base;
  p.num_rows = p.num_heads = 1;
  p.num_states = call.states;
  p.head_dim = call.head_dim;
  p.o_in = to.o_in.data();
  p.lse_in = to.lse_in.data();
  p.o = to.o.data();
  p.lse = to.lse.data();
  p.o_in_stride_state = p.o_in_stride_head = p.o_stride_row = p.o_stride_head = d;
  p.lse_in_stride_state = p.lse_in_stride_head = p.lse_stride_row = p.lse_stride_head = 1;
  return sampled;
}

} // namespace

Verification verify_merge(const TimedMerge &call, const Memory &memory, const MergeJudge &judge) {
  Verification out;
  const Outputs first = check_outputs(checked_outputs(call), memory, out);
  std::vector<std::unique_ptr<SampledMergeRow>> rows;
  for (int row : sample_requests(std::vector<int32_t>(call.rows, call.states)))
    for (int head : sample_heads(row, call.num_heads))
      rows.push_back(sample(call, memory, first, row, head));
  judge(call, rows, out);
  return out;
}

} // namespace assay::bench
