// SPDX-License-Identifier: Apache-2.0
#include "properties/call/bad_merges.h"

#include "properties/call/enlarged.h"

namespace assay {
namespace {

using Kind = BadCall::Kind;

template <class Params>
void spoil_merge(const Spoiler &spoil, Params &p) {
  spoil_header(spoil, p);
  spoil.set_all("dtype", p.dtype, {-1, ASSAY_E4M3, ASSAY_E5M2});
  if (p.stream == nullptr)
    spoil.with(p.dtype, ASSAY_FIELD61,
               {"dtype, stream", Kind::kTogether, "dtype is 64 (field61), without a stream"});
  spoil.set("num_rows", p.num_rows, -1);
  spoil.range("num_heads", p.num_heads, 1, kMaxHeads);
  spoil.set_all("head_dim", p.head_dim, {-8, 0, 4, p.head_dim + 4, 520});
  if (p.num_rows == 0) return; // nothing to write
  spoil.output_stride("o_stride_row", p.o_stride_row, 8, p.num_rows, p.head_dim);
  spoil.output_stride("o_stride_head", p.o_stride_head, 8, p.num_heads, p.head_dim);
  if (p.lse != nullptr) {
    spoil.output_stride("lse_stride_row", p.lse_stride_row, 1, p.num_rows, 1);
    spoil.output_stride("lse_stride_head", p.lse_stride_head, 1, p.num_heads, 1);
  }
  spoil.pointer("o", p.o, 16, false);
  spoil.pointer("lse", p.lse, 4, true);
}

} // namespace

void spoil_merge_state(const Spoiler &spoil, assay_merge_state_params &p) {
  spoil_merge(spoil, p);
  spoil.set("reserved", p.reserved, 1);
  if (p.num_rows == 0) return;
  spoil.stride("o_a_stride_row", p.o_a_stride_row, 8);
  spoil.stride("o_a_stride_head", p.o_a_stride_head, 8);
  spoil.stride("o_b_stride_row", p.o_b_stride_row, 8);
  spoil.stride("o_b_stride_head", p.o_b_stride_head, 8);
  spoil.stride("lse_a_stride_row", p.lse_a_stride_row, 1);
  spoil.stride("lse_a_stride_head", p.lse_a_stride_head, 1);
  spoil.stride("lse_b_stride_row", p.lse_b_stride_row, 1);
  spoil.stride("lse_b_stride_head", p.lse_b_stride_head, 1);
  spoil.pointer("o_a", p.o_a, 16, false);
  spoil.pointer("o_b", p.o_b, 16, false);
  spoil.pointer("lse_a", p.lse_a, 4, false);
  spoil.pointer("lse_b", p.lse_b, 4, false);
  const auto in_place = [&](const std::string &name, auto &in, auto *out, int64_t &stride,
                            int64_t wrong) {
    spoil.both(in, out, stride, wrong,
               {name, Kind::kAlias, name + " is the output, with other strides"});
  };
  in_place("o_a", p.o_a, p.o, p.o_a_stride_row, p.o_stride_row + 8);
  in_place("o_a", p.o_a, p.o, p.o_a_stride_head, p.o_stride_head + 8);
  in_place("o_b", p.o_b, p.o, p.o_b_stride_row, p.o_stride_row + 8);
  in_place("o_b", p.o_b, p.o, p.o_b_stride_head, p.o_stride_head + 8);
  if (p.lse == nullptr) return;
  in_place("lse_a", p.lse_a, p.lse, p.lse_a_stride_row, p.lse_stride_row + 1);
  in_place("lse_a", p.lse_a, p.lse, p.lse_a_stride_head, p.lse_stride_head + 1);
  in_place("lse_b", p.lse_b, p.lse, p.lse_b_stride_row, p.lse_stride_row + 1);
  in_place("lse_b", p.lse_b, p.lse, p.lse_b_stride_head, p.lse_stride_head + 1);
}

void spoil_merge_states(const Spoiler &spoil, assay_merge_states_params &p) {
  spoil_merge(spoil, p);
  spoil.range("num_states", p.num_states, 0, kMaxRows);
  if (p.num_rows == 0) return;
  spoil.pointer("indptr", p.indptr, 4, true);
  if (p.num_states == 0) return;
  spoil.stride("o_in_stride_state", p.o_in_stride_state, 8);
  spoil.stride("o_in_stride_head", p.o_in_stride_head, 8);
  spoil.stride("lse_in_stride_state", p.lse_in_stride_state, 1);
  spoil.stride("lse_in_stride_head", p.lse_in_stride_head, 1);
  spoil.pointer("o_in", p.o_in, 16, false);
  spoil.pointer("lse_in", p.lse_in, 4, false);
  spoil.alias("o_in", p.o_in, p.o, "o");
  if (p.lse != nullptr) spoil.alias("lse_in", p.lse_in, p.lse, "lse");
}

} // namespace assay
