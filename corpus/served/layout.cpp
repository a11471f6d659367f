// SPDX-License-Identifier: Apache-2.0
#include "corpus/served/layout.h"

#include <map>
#include <stdexcept>
#include <utility>

namespace assay::served {
namespace {

int pages_for(int keys) { return (keys + kPage - 1) / kPage; }

float spread(float low, float high, int i) {
  return low + (high - low) * static_cast<float>(i * 7 % 11) / 10.0f;
}

void describe(const Sizes &sizes, assay_paged_params &p) {
  p.struct_size = sizeof p;
  p.dtype = ASSAY_BF16;
  p.kv_dtype = sizes.kv_dtype;
  p.batch = p.kv.rows = static_cast<int32_t>(sizes.lengths.size());
  p.q_len = sizes.q_len;
  p.num_qo_heads = sizes.heads;
  p.num_kv_heads = sizes.kv_heads;
  p.head_dim = kDim;
  p.sm_scale = 0.0883f;
  p.window_left = sizes.window - 1;
  p.q_stride_head = p.out_stride_head = kDim;
  p.q_stride_token = p.out_stride_token = int64_t{kDim} * sizes.heads;
  p.q_stride_batch = p.out_stride_batch = p.q_stride_token * sizes.q_len;
  p.lse_stride_head = 1;
  p.lse_stride_token = sizes.heads;
  p.lse_stride_batch = int64_t{sizes.heads} * sizes.q_len;
  p.kv.k_stride_head = p.kv.v_stride_head = kDim;
  p.kv.k_stride_token = p.kv.v_stride_token = int64_t{kDim} * sizes.kv_heads;
  p.kv.k_stride_page = p.kv.v_stride_page = kPage * p.kv.k_stride_token;
  p.kv.page_size = kPage;
}

void give_features(const Sizes &sizes, Call &call) {
  if (sizes.kv_dtype != ASSAY_BF16) {
    call.p.k_scale_stride = call.p.v_scale_stride = 1;
    for (int i = 0; i < sizes.kv_heads; ++i) {
      call.k_scale.push_back(spread(0.7f, 1.4f, i));
      call.v_scale.push_back(spread(0.5f, 1.5f, i + 3));
    }
  }
  for (int i = 0; i < sizes.heads; ++i) {
    if (sizes.sinks) call.sinks.push_back(spread(3.0f, 5.0f, i));
    if (sizes.alibi) call.slopes.push_back(spread(0x1p-11f, 0x1p-9f, i));
  }
}

/// A page for each of a request's keys and for the one behind them.
void number_pages(const Sizes &sizes, Call &call) {
  const auto requests = static_cast<int>(sizes.lengths.size());
  const int columns = pages_for(*std::max_element(sizes.lengths.begin(), sizes.lengths.end())) + 1;
  const int trunk = sizes.trunk / kPage, fork_end = trunk + sizes.branch / kPage;
  call.p.kv.page_table_stride = call.p.kv.max_pages = columns;
  call.table.assign(static_cast<size_t>(requests) * static_cast<size_t>(columns), 0);
  std::map<std::pair<int, int>, int> numbers;
  for (int r = 0; r < requests; ++r)
    for (int i = 0; i < pages_for(sizes.lengths[static_cast<size_t>(r)] + 1); ++i) {
      const int owner = i < trunk ? -1 : i < fork_end ? r / sizes.fork : requests + r;
      const auto next = static_cast<int>(numbers.size());
      call.page_of(r, i * kPage) = numbers.try_emplace({owner, i}, next).first->second;
    }
  call.pages = static_cast<int>(numbers.size()) + sizes.lost_pages;
  if (call.pages % 7919 == 0) ++call.pages;
  for (int32_t &id : call.table)
    id = static_cast<int32_t>(int64_t{id} * 7919 % call.pages);
}

} // namespace

Call laid_out(const Sizes &sizes, assay_target target) {
  Call call;
  describe(sizes, call.p);
  call.p.target = target;
  call.lengths = sizes.lengths;
  give_features(sizes, call);
  number_pages(sizes, call);
  int32_t &middle = call.page_of(sizes.request, sizes.middle_key());
  for (int32_t &id : call.table)
    if (middle < sizes.lost_pages && id >= sizes.lost_pages) std::swap(id, middle);
  if (middle < sizes.lost_pages) throw std::logic_error("no page behind the lost ones");
  return call;
}

} // namespace assay::served
