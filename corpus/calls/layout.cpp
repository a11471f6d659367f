// SPDX-License-Identifier: Apache-2.0
#include <utility>

#include "corpus/calls/wrong_calls.h"

namespace assay::wrong_calls {
namespace {

/// A pointer is taken to be aligned.
template <class T>
void round_down(T *&p, uintptr_t bytes) {
  p = reinterpret_cast<T *>(reinterpret_cast<uintptr_t>(p) / bytes * bytes);
}

/// The longer stride is taken for that of the requests.
void put_rows_outermost(int64_t &row, int64_t &head, const assay_paged_params &p) {
  if (p.batch > 1 && p.num_qo_heads > 1 && head > row && row > 0) std::swap(row, head);
}

} // namespace

std::vector<assay_kernel> wrong_layouts() {
  return {
      paged("query_down_to_32", "paged_attention_v1", [](auto &p) { round_down(p.q, 32); }),
      paged("keys_down_to_64", "paged_attention_v2", [](auto &p) { round_down(p.kv.k, 64); }),
      paged("values_down_to_128", "tree_attention", [](auto &p) { round_down(p.kv.v, 128); }),
      paged("table_down_to_16", "paged_attention_v2",
            [](auto &p) { round_down(p.kv.page_table, 16); }),
      paged("lengths_down_to_8", "paged_attention_v1",
            [](auto &p) { round_down(p.kv.seq_lens, 8); }),
      paged("scales_down_to_16", "paged_attention_v2", [](auto &p) { round_down(p.k_scale, 16); }),
      cascade("lse_down_to_64", [](auto &p) { round_down(p.lse, 64); }),
      cascade("segments_down_to_32",
              [](auto &p, auto run) {
                std::vector<assay_cascade_level> levels(p.levels, p.levels + p.num_levels);
                for (assay_cascade_level &level : levels)
                  round_down(level.segment_indptr, 32);
                p.levels = levels.data();
                return run(&p);
              }),
      merge_states("states_down_to_64", [](auto &p) { round_down(p.o_in, 64); }),
      paged("query_rows_outermost", "paged_attention_v1",
            [](auto &p) { put_rows_outermost(p.q_stride_batch, p.q_stride_head, p); }),
      paged("output_rows_outermost", "tree_attention",
            [](auto &p) { put_rows_outermost(p.out_stride_batch, p.out_stride_head, p); }),
      paged("lse_rows_outermost", "paged_attention_v2",
            [](auto &p) { put_rows_outermost(p.lse_stride_batch, p.lse_stride_head, p); }),
  };
}

} // namespace assay::wrong_calls
