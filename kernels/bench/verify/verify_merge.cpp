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

template <class Params>
Params sizes(const TimedMerge &call) {
  Params p{};
  p.struct_size = sizeof p;
  p.target = call.target;
  p.dtype = call.dtype;
  p.lse_base = call.lse_base;
  p.num_rows = call.rows;
  p.num_heads = call.num_heads;
  p.head_dim = call.head_dim;
  p.out = call.o;
  p.lse = call.lse;
  p.out_stride_row = int64_t{call.num_heads} * call.head_dim;
  p.out_stride_head = call.head_dim;
  p.lse_stride_row = call.num_heads;
  p.lse_stride_head = 1;
  return p;
}

} // namespace

assay_merge_state_params state_params(const TimedMerge &call) {
  auto p = sizes<assay_merge_state_params>(call);
  p.o_a = call.o_in;
  p.lse_a = call.lse_in;
  p.o_b = static_cast<const uint16_t *>(call.o_in) + call.o_in_stride_state;
  p.lse_b = call.lse_in + call.lse_in_stride_state;
  p.o_a_stride_row = p.o_b_stride_row = call.o_in_stride_row;
  p.o_a_stride_head = p.o_b_stride_head = call.head_dim;
  p.lse_a_stride_row = p.lse_b_stride_row = call.lse_in_stride_row;
  p.lse_a_stride_head = p.lse_b_stride_head = 1;
  return p;
}

assay_merge_states_params states_params(const TimedMerge &call) {
  auto p = sizes<assay_merge_states_params>(call);
  p.num_states = call.states;
  p.o_in = call.o_in;
  p.lse_in = call.lse_in;
  p.o_in_stride_state = call.o_in_stride_state;
  p.o_in_stride_head = call.head_dim;
  p.lse_in_stride_state = call.lse_in_stride_state;
  p.lse_in_stride_head = 1;
  return p;
}

Verification verify_merge(const TimedMerge &call, const Memory &memory, const Judge &judge) {
  Verification out;
  const CheckedOutputs checked = checked_outputs(call);
  check_outputs(checked, memory, out);
  const assay_merge_state_params pair = state_params(call);
  const assay_merge_states_params many = states_params(call);
  const void *params = call.kernel == "merge_state" ? static_cast<const void *>(&pair) : &many;
  judge({call.kernel, call.target, params, params, call.o, call.lse,
         sampled_rows(std::vector<int32_t>(call.rows, call.states), 1, call.num_heads,
                      call.num_heads),
         named_by(checked, call.num_heads)},
        memory, out);
  return out;
}

} // namespace assay::bench
