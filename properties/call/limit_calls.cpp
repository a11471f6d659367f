// SPDX-License-Identifier: Apache-2.0
#include "properties/call/limit_calls.h"

#include <algorithm>
#include <initializer_list>

#include <fmt/format.h>

#include "properties/call/limit_attention.h"

namespace assay {
namespace {

/// Rows and heads together that a merge of so many states may have.
int64_t merge_rows(int64_t head_dim, int64_t states) {
  constexpr int64_t kFew = 4, kOneWorker = 16;
  const int64_t elements = ((int64_t{1} << 40) - 1) / head_dim;
  if (states <= kFew) return elements;
  return std::min(elements, states <= kOneWorker ? 16 * kMaxBlocks : kMaxBlocks);
}

void use_output_strides(assay_merge_state_params &p) {
  p.o_a_stride_row = p.o_b_stride_row = p.out_stride_row;
  p.o_a_stride_head = p.o_b_stride_head = p.out_stride_head;
  p.lse_a_stride_row = p.lse_b_stride_row = p.lse_stride_row;
  p.lse_a_stride_head = p.lse_b_stride_head = p.lse_stride_head;
}

template <class Params>
void merge_limit(const OversizedCall &call, Params &p, int64_t heads, int64_t head_dim,
                 int64_t states) {
  const auto ask = [&](bool allowed, int64_t rows) {
    const std::string what = fmt::format("num_rows {}, num_heads {}, head_dim {}, {} states", rows,
                                         heads, head_dim, states);
    call.ask(allowed, "rows", what, [&] {
      p.num_rows = int32(rows);
      p.num_heads = int32(heads);
      p.head_dim = int32(head_dim);
      if constexpr (requires { p.num_states; }) p.num_states = int32(states);
      p.out_stride_row = heads * head_dim;
      p.out_stride_head = head_dim;
      p.lse_stride_row = heads;
      p.lse_stride_head = 1;
      if constexpr (requires { p.o_a; }) use_output_strides(p); // where the case is in place
    });
  };
  const int64_t rows = std::min(merge_rows(head_dim, states) / heads, kMaxBlocks);
  ask(true, rows);
  if (rows < kMaxBlocks) ask(false, rows + 1);
}

template <class Params>
void merge_limits(const OversizedCall &call, Params &p, std::initializer_list<int64_t> states) {
  const int64_t own_heads = p.num_heads, own_dim = p.head_dim;
  for (const int64_t n : states) {
    merge_limit(call, p, own_heads, own_dim, n);
    merge_limit(call, p, 1, 512, n);
    merge_limit(call, p, 2, 512, n);
    merge_limit(call, p, 64, 8, n);
    merge_limit(call, p, 65, 8, n);
    merge_limit(call, p, kMaxHeads, 8, n);
    merge_limit(call, p, 16, 32, n);
    merge_limit(call, p, 17, 24, n);
  }
}

} // namespace

void for_each_limit(AbiParams &right, const CallTraits &traits, const AskLimit &ask) {
  const OversizedCall call(right, ask);
  switch (right.family) {
  case Family::kPaged:
    return paged_limits(right, traits, ask);
  case Family::kCascade:
    return cascade_limits(right, traits, ask);
  case Family::kMergeState:
    return merge_limits(call, right.merge_state, {2});
  case Family::kMergeStates:
    return merge_limits(call, right.merge_states, {1, 4, 5, 16, 17, kMaxRows});
  }
}

} // namespace assay
