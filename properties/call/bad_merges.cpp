// SPDX-License-Identifier: Apache-2.0
#include "properties/call/bad_merges.h"

#include "properties/call/oversized_call.h"

namespace assay {
namespace {

using Kind = BadCall::Kind;

template <class Params>
void corrupt_merge(const CallCorruptor &corrupt, Params &p) {
  corrupt_header(corrupt, p);
  corrupt.set_all("dtype", p.dtype, {-1, ASSAY_E4M3, ASSAY_E5M2});
  if (p.stream == nullptr)
    corrupt.with(p.dtype, ASSAY_FIELD61,
                 {"dtype, stream", Kind::kTogether, "dtype is 64 (field61), without a stream"});
  corrupt.set("num_rows", p.num_rows, -1);
  corrupt.range("num_heads", p.num_heads, 1, kMaxHeads);
  corrupt.set_all("head_dim", p.head_dim, {-8, 0, 4, p.head_dim + 4, 520});
  if (p.num_rows == 0) return; // nothing to write
  corrupt.output_stride("out_stride_row", p.out_stride_row, 8, p.num_rows, p.head_dim);
  corrupt.output_stride("out_stride_head", p.out_stride_head, 8, p.num_heads, p.head_dim);
  if (p.lse != nullptr) {
    corrupt.output_stride("lse_stride_row", p.lse_stride_row, 1, p.num_rows, 1);
    corrupt.output_stride("lse_stride_head", p.lse_stride_head, 1, p.num_heads, 1);
  }
  corrupt.pointer("out", p.out, 16, false);
  corrupt.pointer("lse", p.lse, 4, true);
}

} // namespace

void corrupt_merge_state(const CallCorruptor &corrupt, assay_merge_state_params &p) {
  corrupt_merge(corrupt, p);
  corrupt.set("reserved", p.reserved, 1);
  if (p.num_rows == 0) return;
  corrupt.stride("o_a_stride_row", p.o_a_stride_row, 8);
  corrupt.stride("o_a_stride_head", p.o_a_stride_head, 8);
  corrupt.stride("o_b_stride_row", p.o_b_stride_row, 8);
  corrupt.stride("o_b_stride_head", p.o_b_stride_head, 8);
  corrupt.stride("lse_a_stride_row", p.lse_a_stride_row, 1);
  corrupt.stride("lse_a_stride_head", p.lse_a_stride_head, 1);
  corrupt.stride("lse_b_stride_row", p.lse_b_stride_row, 1);
  corrupt.stride("lse_b_stride_head", p.lse_b_stride_head, 1);
  corrupt.pointer("o_a", p.o_a, 16, false);
  corrupt.pointer("o_b", p.o_b, 16, false);
  corrupt.pointer("lse_a", p.lse_a, 4, false);
  corrupt.pointer("lse_b", p.lse_b, 4, false);
  const auto in_place = [&](const std::string &name, auto &in, auto *out, int64_t &stride,
                            int64_t wrong) {
    corrupt.both(in, out, stride, wrong,
                 {name, Kind::kAlias, name + " is the output, with other strides"});
  };
  in_place("o_a", p.o_a, p.out, p.o_a_stride_row, p.out_stride_row + 8);
  in_place("o_a", p.o_a, p.out, p.o_a_stride_head, p.out_stride_head + 8);
  in_place("o_b", p.o_b, p.out, p.o_b_stride_row, p.out_stride_row + 8);
  in_place("o_b", p.o_b, p.out, p.o_b_stride_head, p.out_stride_head + 8);
  if (p.lse == nullptr) return;
  in_place("lse_a", p.lse_a, p.lse, p.lse_a_stride_row, p.lse_stride_row + 1);
  in_place("lse_a", p.lse_a, p.lse, p.lse_a_stride_head, p.lse_stride_head + 1);
  in_place("lse_b", p.lse_b, p.lse, p.lse_b_stride_row, p.lse_stride_row + 1);
  in_place("lse_b", p.lse_b, p.lse, p.lse_b_stride_head, p.lse_stride_head + 1);
}

void corrupt_merge_states(const CallCorruptor &corrupt, assay_merge_states_params &p) {
  corrupt_merge(corrupt, p);
  corrupt.range("num_states", p.num_states, 0, kMaxRows);
  if (p.num_rows == 0) return;
  corrupt.pointer("indptr", p.indptr, 4, true);
  if (p.num_states == 0) return;
  corrupt.stride("o_in_stride_state", p.o_in_stride_state, 8);
  corrupt.stride("o_in_stride_head", p.o_in_stride_head, 8);
  corrupt.stride("lse_in_stride_state", p.lse_in_stride_state, 1);
  corrupt.stride("lse_in_stride_head", p.lse_in_stride_head, 1);
  corrupt.pointer("o_in", p.o_in, 16, false);
  corrupt.pointer("lse_in", p.lse_in, 4, false);
  corrupt.alias("o_in", p.o_in, p.out, "out");
  if (p.lse != nullptr) corrupt.alias("lse_in", p.lse_in, p.lse, "lse");
}

} // namespace assay
