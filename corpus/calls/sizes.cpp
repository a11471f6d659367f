// SPDX-License-Identifier: Apache-2.0
// Lengths are read where they lie: on the executor they are host memory.
#include <algorithm>

#include "corpus/calls/wrong_calls.h"

namespace assay::wrong_calls {
namespace {

bool is_fp8(const assay_paged_params &p) {
  return p.kv_dtype == ASSAY_E4M3 || p.kv_dtype == ASSAY_E5M2;
}

/// Only the newest keys count.
void keep_newest(assay_paged_params &p, int32_t keys) {
  // Exact numbers have no window.
  if (p.dtype == ASSAY_FIELD61 || p.batch == 0) return;
  const int32_t longest = *std::max_element(p.kv.seq_lens, p.kv.seq_lens + p.batch);
  if (longest <= keys) return;
  p.window_left = p.window_left < 0 ? keys - 1 : std::min(p.window_left, keys - 1);
}

template <class T>
T *elements_on(T *p, int64_t elements, int bytes) {
  return reinterpret_cast<T *>(reinterpret_cast<uintptr_t>(p) +
                               static_cast<uintptr_t>(elements * bytes));
}

constexpr auto scale_later_requests = [](assay_paged_params &p, auto run) {
  constexpr int32_t kFirst = 64;
  const assay_status status = run(&p);
  if (status != ASSAY_OK || p.batch <= kFirst || p.dtype == ASSAY_FIELD61) return status;
  p.batch = p.kv.rows = p.batch - kFirst;
  p.q = elements_on(p.q, kFirst * p.q_stride_batch, 2);
  p.out = elements_on(p.out, kFirst * p.out_stride_batch, 2);
  if (p.lse != nullptr) p.lse += kFirst * p.lse_stride_batch;
  p.kv.page_table += kFirst * p.kv.page_table_stride;
  p.kv.seq_lens += kFirst;
  p.sm_scale *= 1.25f;
  return run(&p);
};

constexpr auto lose_states_beyond_256 = [](assay_merge_states_params &p, auto run) {
  constexpr int32_t kMost = 256;
  if (p.num_states <= kMost || p.indptr != nullptr) return run(&p);
  const int bytes = p.dtype == ASSAY_FP32 || p.dtype == ASSAY_FIELD61 ? 4 : 2;
  assay_merge_states_params row = p;
  row.num_rows = 1;
  row.num_states = kMost;
  for (int32_t r = 0; r < p.num_rows; ++r) {
    row.o_in = elements_on(p.o_in, int64_t{r} * p.num_states * p.o_in_stride_state, bytes);
    row.lse_in = p.lse_in + int64_t{r} * p.num_states * p.lse_in_stride_state;
    row.out = elements_on(p.out, r * p.out_stride_row, bytes);
    if (p.lse != nullptr) row.lse = p.lse + r * p.lse_stride_row;
    if (const assay_status status = run(&row)) return status;
  }
  return assay_status{ASSAY_OK};
};

} // namespace

std::vector<assay_kernel> wrong_sizes() {
  return {
      paged("splits_follow_batch", "paged_attention_v2",
            [](auto &p) {
              if (p.batch >= 32) p.num_splits = std::min(p.num_splits, 1);
            }),
      paged("teams_follow_heads", "paged_attention_v1",
            [](auto &p) {
              if (p.batch >= 16 && p.num_qo_heads >= 16) p.even_lengths = 1;
            }),
      paged("keys_beyond_16384_lost", "paged_attention_v2",
            [](auto &p) { keep_newest(p, 16'384); }),
      paged("keys_beyond_8192_lost", "tree_attention", [](auto &p) { keep_newest(p, 8'192); }),
      paged("long_window_one_key_wider", "paged_attention_v1",
            [](auto &p) {
              if (p.window_left >= 511) ++p.window_left;
            }),
      paged("window_of_tokens_one_key_narrower", "paged_attention_v2",
            [](auto &p) {
              if (is_fp8(p) && p.q_len > 1 && p.window_left >= 127) --p.window_left;
            }),
      paged("pages_of_256_overlap", "paged_attention_v1",
            [](auto &p) {
              if (p.kv.page_size == 256) p.kv.k_stride_page -= p.kv.k_stride_token;
            }),
      paged("keys_of_splits_beyond_256_lost", "paged_attention_v2",
            [](auto &p) {
              if (p.batch == 1 && p.num_splits > 256)
                keep_newest(
                    p, static_cast<int32_t>(int64_t{p.kv.seq_lens[0]} * 256 / p.num_splits) + 1);
            }),
      paged("later_requests_scaled", "paged_attention_v1", scale_later_requests),
      merge_states("states_beyond_256_lost", lose_states_beyond_256),
  };
}

} // namespace assay::wrong_calls
