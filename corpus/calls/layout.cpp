// SPDX-License-Identifier: Apache-2.0
#include <utility>
#include <vector>

#include "corpus/calls/wrong_calls.h"

namespace assay::wrong_calls {

assay_status query_down_to_32(assay_paged_params p) {
  p.q = rounded_down(p.q, 32);
  return assay_paged_attention_v1(&p);
}
assay_status keys_down_to_64(assay_paged_params p) {
  p.kv.k = rounded_down(p.kv.k, 64);
  return assay_paged_attention_v2(&p);
}
assay_status values_down_to_128(assay_paged_params p) {
  p.kv.v = rounded_down(p.kv.v, 128);
  return assay_tree_attention(&p);
}
assay_status table_down_to_16(assay_paged_params p) {
  p.kv.page_table = rounded_down(p.kv.page_table, 16);
  return assay_paged_attention_v2(&p);
}
assay_status lengths_down_to_8(assay_paged_params p) {
  p.kv.seq_lens = rounded_down(p.kv.seq_lens, 8);
  return assay_paged_attention_v1(&p);
}
assay_status scales_down_to_16(assay_paged_params p) {
  p.k_scale = rounded_down(p.k_scale, 16);
  return assay_paged_attention_v2(&p);
}
assay_status lse_down_to_64(assay_cascade_params p) {
  p.lse = rounded_down(p.lse, 64);
  return assay_cascade_attention(&p);
}
assay_status segments_down_to_32(assay_cascade_params p) {
  std::vector<assay_cascade_level> levels(p.levels, p.levels + p.num_levels);
  for (assay_cascade_level &level : levels)
    level.segment_indptr = rounded_down(level.segment_indptr, 32);
  p.levels = levels.data();
  return assay_cascade_attention(&p);
}
assay_status states_down_to_64(assay_merge_states_params p) {
  p.o_in = rounded_down(p.o_in, 64);
  return assay_merge_states(&p);
}

namespace {

/// The longer stride is taken for that of the requests.
void put_rows_outermost(int64_t &row, int64_t &head, const assay_paged_params &p) {
  if (p.batch > 1 && p.num_qo_heads > 1 && head > row && row > 0) std::swap(row, head);
}

} // namespace

assay_status query_rows_outermost(assay_paged_params p) {
  put_rows_outermost(p.q_stride_batch, p.q_stride_head, p);
  return assay_paged_attention_v1(&p);
}
assay_status output_rows_outermost(assay_paged_params p) {
  put_rows_outermost(p.o_stride_batch, p.o_stride_head, p);
  return assay_tree_attention(&p);
}
assay_status lse_rows_outermost(assay_paged_params p) {
  put_rows_outermost(p.lse_stride_batch, p.lse_stride_head, p);
  return assay_paged_attention_v2(&p);
}

} // namespace assay::wrong_calls
