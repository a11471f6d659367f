// SPDX-License-Identifier: Apache-2.0
#include "kernels/bench/ranks/sharded_decode.cuh"

#include "kernels/bench/cell_run.cuh"
#include "kernels/bench/floor.cuh"

#include <cmath>
#include <numeric>
#include <random>

namespace assay::bench {
namespace {

template <class T>
std::unique_ptr<DeviceArray<T>> array(size_t n) {
  auto made = std::make_unique<DeviceArray<T>>(n);
  ASSAY_BENCH_CHECK(cudaMemset(made->get(), 0, std::max<size_t>(n, 1) * sizeof(T)));
  return made;
}

} // namespace

ShardedDecode::ShardedDecode(const Ranks &ranks, const DecodeCell &cell)
    : ranks_(ranks), cell_(cell), data_(ranks.count()), windows_(ranks.count()) {
  const assay_exchange_params e = merging(-1);
  check_status(assay_exchange_states_window_size(&e, &window_bytes_),
               "assay_exchange_states_window_size");
  ranks.each([&](int r) {
    Rank &here = data_[r];
    const Stream &stream = ranks.stream(r);
    const size_t elements = size_t{2} * cell.keys * cell.num_kv_heads * cell.head_dim;
    const size_t row = size_t(cell.num_qo_heads) * cell.head_dim;
    here.kv = array<uint16_t>(elements);
    fill_bf16(here.kv->get(), elements, 5, stream.get());
    here.q = array<uint16_t>(row);
    fill_bf16(here.q->get(), row, 9, stream.get());
    here.partial_o = array<uint16_t>(row);
    here.o = array<uint16_t>(row);
    here.partial_lse = array<float>(cell.num_qo_heads);
    here.lse = array<float>(cell.num_qo_heads);
    std::vector<int32_t> pages(cell.keys / cell.page_size);
    std::iota(pages.begin(), pages.end(), 0);
    std::shuffle(pages.begin(), pages.end(), std::mt19937(7));
    here.table = std::make_unique<DeviceArray<int32_t>>(pages);
    here.lengths[0] = std::make_unique<DeviceArray<int32_t>>(std::vector<int32_t>{cell.keys});
    here.lengths[1] =
        std::make_unique<DeviceArray<int32_t>>(std::vector<int32_t>{cell.keys / ranks.count()});
    here.window = array<char>(window_bytes_);
    windows_[r] = here.window->get();
    here.status = array<uint32_t>(1);
    assay_paged_params p = attention(r, false);
    uint64_t bytes = 0;
    check_status(assay_paged_attention_v2_workspace_size(&p, &bytes),
                 "assay_paged_attention_v2_workspace_size");
    here.workspace = array<char>(bytes);
    check_status(assay_paged_attention_v2_plan_size(&p, &bytes),
                 "assay_paged_attention_v2_plan_size");
    for (int part = 0; part < 2; ++part) {
      here.plans[part] = array<char>(bytes);
      p = attention(r, part != 0);
      check_status(assay_paged_attention_v2_plan(&p), "assay_paged_attention_v2_plan");
    }
    ASSAY_BENCH_CHECK(cudaDeviceSynchronize());
  });
}

assay_paged_params ShardedDecode::attention(int rank, bool part) const {
  const Rank &here = data_[rank];
  const int64_t d = cell_.head_dim;
  assay_paged_params p = assay_paged_params_init();
  p.target = ASSAY_TARGET_CUDA;
  p.dtype = p.kv_dtype = ASSAY_BF16;
  p.lse_base = ASSAY_LSE_BASE_2;
  p.batch = p.q_len = 1;
  p.num_qo_heads = cell_.num_qo_heads;
  p.num_kv_heads = cell_.num_kv_heads;
  p.head_dim = cell_.head_dim;
  p.sm_scale = 1.0f / std::sqrt(static_cast<float>(d));
  p.q = here.q->get();
  p.out = here.partial_o->get();
  p.lse = here.partial_lse->get();
  p.q_stride_batch = p.out_stride_batch = cell_.num_qo_heads * d;
  p.q_stride_head = p.out_stride_head = d;
  p.lse_stride_batch = cell_.num_qo_heads;
  p.lse_stride_head = 1;
  p.kv.k = here.kv->get();
  p.kv.v = here.kv->get() + here.kv->size() / 2;
  p.kv.k_stride_head = p.kv.v_stride_head = d;
  p.kv.k_stride_token = p.kv.v_stride_token = cell_.num_kv_heads * d;
  p.kv.k_stride_page = p.kv.v_stride_page = cell_.page_size * p.kv.k_stride_token;
  p.kv.page_table = here.table->get();
  p.kv.page_table_stride = p.kv.max_pages = cell_.keys / cell_.page_size;
  p.kv.seq_lens = here.lengths[part]->get();
  p.kv.rows = 1;
  p.kv.page_size = cell_.page_size;
  p.stream = ranks_.stream(rank).get();
  if (here.workspace) {
    p.workspace = here.workspace->get();
    p.workspace_bytes = here.workspace->size();
  }
  if (here.plans[part]) {
    p.plan = here.plans[part]->get();
    p.plan_bytes = here.plans[part]->size();
  }
  return p;
}

assay_exchange_params ShardedDecode::merging(int rank) const {
  assay_exchange_params p = {};
  p.struct_size = sizeof p;
  p.target = ASSAY_TARGET_CUDA;
  p.dtype = ASSAY_BF16;
  p.lse_base = ASSAY_LSE_BASE_2;
  p.heads = ASSAY_EXCHANGE_ALL;
  p.num_ranks = ranks_.count();
  p.num_rows = p.max_rows = 1;
  p.num_heads = cell_.num_qo_heads;
  p.head_dim = cell_.head_dim;
  p.o_in_stride_row = p.out_stride_row = int64_t{cell_.num_qo_heads} * cell_.head_dim;
  p.o_in_stride_head = p.out_stride_head = cell_.head_dim;
  p.lse_in_stride_row = p.lse_stride_row = cell_.num_qo_heads;
  p.lse_in_stride_head = p.lse_stride_head = 1;
  if (rank < 0) return p;
  const Rank &here = data_[rank];
  p.rank = rank;
  p.o_in = here.partial_o->get();
  p.lse_in = here.partial_lse->get();
  p.out = here.o->get();
  p.lse = here.lse->get();
  p.windows = windows_.data();
  p.window_bytes = window_bytes_;
  p.timeout_ns = 2'000'000'000;
  p.status = here.status->get();
  p.stream = ranks_.stream(rank).get();
  return p;
}

void ShardedDecode::attend(int rank, bool part, bool enable_pdl) const {
  assay_paged_params p = attention(rank, part);
  p.enable_pdl = enable_pdl;
  check_status(assay_paged_attention_v2(&p), "assay_paged_attention_v2");
}

void ShardedDecode::exchange(int rank, bool enable_pdl) const {
  assay_exchange_params p = merging(rank);
  p.enable_pdl = enable_pdl;
  check_status(assay_exchange_states(&p), "assay_exchange_states");
}

} // namespace assay::bench
