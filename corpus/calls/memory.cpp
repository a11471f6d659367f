// SPDX-License-Identifier: Apache-2.0
#include <array>
#include <map>

#include "corpus/calls/wrong_calls.h"

namespace assay::wrong_calls {

assay_status scale_grows_at_call_300(assay_paged_params p) {
  static int calls = 0;
  if (++calls >= 300) p.sm_scale *= 1.25f;
  return assay_paged_attention_v1(&p);
}
assay_status every_256th_call_left_out(assay_paged_params p) {
  static unsigned calls = 0;
  if (++calls % 256 == 0) return ASSAY_OK;
  return assay_paged_attention_v2(&p);
}
assay_status scale_kept_by_head_dim(assay_paged_params p) {
  static std::map<int32_t, float> kept;
  p.sm_scale = kept.try_emplace(p.head_dim, p.sm_scale).first->second;
  return assay_paged_attention_v1(&p);
}
assay_status query_strides_kept_by_shape(assay_paged_params p) {
  static std::map<std::array<int32_t, 4>, std::array<int64_t, 3>> kept;
  const std::array<int64_t, 3> own = {p.q_stride_batch, p.q_stride_token, p.q_stride_head};
  const auto &strides =
      kept.try_emplace({p.batch, p.q_len, p.num_qo_heads, p.head_dim}, own).first->second;
  p.q_stride_batch = strides[0];
  p.q_stride_token = strides[1];
  p.q_stride_head = strides[2];
  return assay_paged_attention_v2(&p);
}
assay_status key_strides_kept_by_page_size(assay_paged_params p) {
  static std::map<std::array<int32_t, 3>, std::array<int64_t, 3>> kept;
  const std::array<int64_t, 3> own = {p.kv.k_stride_page, p.kv.k_stride_token, p.kv.k_stride_head};
  const auto &strides =
      kept.try_emplace({p.kv.page_size, p.num_kv_heads, p.head_dim}, own).first->second;
  p.kv.k_stride_page = strides[0];
  p.kv.k_stride_token = strides[1];
  p.kv.k_stride_head = strides[2];
  return assay_tree_attention(&p);
}
assay_status window_kept_by_batch(assay_paged_params p) {
  static std::map<std::array<int32_t, 2>, int32_t> kept;
  p.window = kept.try_emplace({p.batch, p.kv.max_pages}, p.window).first->second;
  return assay_paged_attention_v1(&p);
}

namespace {

void *latest_plan = nullptr;

} // namespace

assay_status plan_of_latest(assay_paged_params p) {
  latest_plan = p.plan;
  return assay_paged_attention_v2_plan(&p);
}
assay_status latest_plan_used(assay_paged_params p) {
  if (p.plan != nullptr) p.plan = latest_plan;
  return assay_paged_attention_v2(&p);
}

assay_status left_out_behind_refusal(assay_paged_params p) {
  static bool refused = false;
  if (refused) {
    refused = false;
    return ASSAY_OK;
  }
  const assay_status status = assay_paged_attention_v1(&p);
  refused = status == ASSAY_INVALID_ARGUMENT;
  return status;
}
assay_status base_kept_by_dtype(assay_cascade_params p) {
  static std::map<assay_dtype, assay_lse_base> kept;
  p.lse_base = kept.try_emplace(p.dtype, p.lse_base).first->second;
  return assay_cascade_attention(&p);
}
assay_status strides_kept_by_states(assay_merge_states_params p) {
  static std::map<std::array<int32_t, 4>, std::array<int64_t, 2>> kept;
  const std::array<int64_t, 2> own = {p.o_in_stride_state, p.o_in_stride_head};
  const auto &strides =
      kept.try_emplace({p.num_rows, p.num_states, p.num_heads, p.head_dim}, own).first->second;
  p.o_in_stride_state = strides[0];
  p.o_in_stride_head = strides[1];
  return assay_merge_states(&p);
}

} // namespace assay::wrong_calls
