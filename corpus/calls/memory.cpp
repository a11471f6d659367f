// SPDX-License-Identifier: Apache-2.0
#include <map>
#include <tuple>

#include "corpus/calls/wrong_calls.h"

namespace assay::wrong_calls {
namespace {

/// Fields that keep the values of the first call with the key. One memory for each `Mistake`.
template <class Mistake, class Key, class... Fields>
void keep(Mistake, const Key &key, Fields &...fields) {
  static std::map<Key, std::tuple<Fields...>> kept;
  std::tie(fields...) = kept.try_emplace(key, fields...).first->second;
}

void *latest_plan = nullptr;

assay_kernel latest_plan_used() {
  static const auto plan = own_kernel("paged_attention_v2").plan;
  assay_kernel kernel = paged("latest_plan_used", "paged_attention_v2", [](auto &p) {
    if (p.plan != nullptr) p.plan = latest_plan;
  });
  kernel.plan = [](const void *params) {
    if (params == nullptr) return assay_status{ASSAY_INVALID_ARGUMENT};
    latest_plan = static_cast<const assay_paged_params *>(params)->plan;
    return plan(params);
  };
  return kernel;
}

} // namespace

std::vector<assay_kernel> wrong_memories() {
  return {
      paged("scale_grows_at_call_300", "paged_attention_v1",
            [](auto &p) {
              static int calls = 0;
              if (++calls >= 300) p.sm_scale *= 1.25f;
            }),
      paged("every_256th_call_left_out", "paged_attention_v2",
            [](auto &p, auto run) {
              static unsigned calls = 0;
              return ++calls % 256 == 0 ? assay_status{ASSAY_OK} : run(&p);
            }),
      paged("scale_kept_by_head_dim", "paged_attention_v1",
            [](auto &p) { keep([] {}, p.head_dim, p.sm_scale); }),
      paged("query_strides_kept_by_shape", "paged_attention_v2",
            [](auto &p) {
              keep([] {}, std::tuple(p.batch, p.q_len, p.num_qo_heads, p.head_dim),
                   p.q_stride_batch, p.q_stride_token, p.q_stride_head);
            }),
      paged("key_strides_kept_by_page_size", "tree_attention",
            [](auto &p) {
              keep([] {}, std::tuple(p.kv.page_size, p.num_kv_heads, p.head_dim),
                   p.kv.k_stride_page, p.kv.k_stride_token, p.kv.k_stride_head);
            }),
      paged("window_kept_by_batch", "paged_attention_v1",
            [](auto &p) { keep([] {}, std::tuple(p.batch, p.kv.max_pages), p.window_left); }),
      latest_plan_used(),
      paged("left_out_behind_refusal", "paged_attention_v1",
            [](auto &p, auto run) {
              static bool refused = false;
              if (refused) {
                refused = false;
                return assay_status{ASSAY_OK};
              }
              const assay_status status = run(&p);
              refused = status == ASSAY_INVALID_ARGUMENT;
              return status;
            }),
      cascade("base_kept_by_dtype", [](auto &p) { keep([] {}, p.dtype, p.lse_base); }),
      merge_states("strides_kept_by_states",
                   [](auto &p) {
                     keep([] {}, std::tuple(p.num_rows, p.num_states, p.num_heads, p.head_dim),
                          p.o_in_stride_state, p.o_in_stride_head);
                   }),
  };
}

} // namespace assay::wrong_calls
