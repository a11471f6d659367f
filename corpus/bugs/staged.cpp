// SPDX-License-Identifier: Apache-2.0
#include "corpus/bugs/staged.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include "corpus/bugs/bug.h"
#include "corpus/bugs/launch.h"
#include "corpus/bugs/staged_pass.h"
#include "kernels/arch/grid_order.cuh"
#include "kernels/arch/thread.cuh"

namespace assay::bugs {
namespace {

StagedCall staged_call(const assay_paged_params &p) {
  StagedCall call{&p, nullptr, nullptr, nullptr, 0};
  const uint64_t slots = uint64_t{2} * p.batch * p.num_qo_heads;
  const auto base = reinterpret_cast<uintptr_t>(p.workspace); // null while sizes are asked
  const auto take = [&](uint64_t bytes) {
    return base + std::exchange(call.bytes, call.bytes + (bytes + 15) / 16 * 16);
  };
  call.counters = reinterpret_cast<uint32_t *>(take(uint64_t{4} * p.batch * p.num_kv_heads));
  call.partial_o = reinterpret_cast<float *>(take(slots * p.head_dim * 4));
  call.partial_lse = reinterpret_cast<float *>(take(slots * 4));
  return call;
}

StagedBlock this_block(const assay_paged_params &p) {
  const int index = static_cast<int>(arch::block_idx_x());
  StagedBlock block{&p, 0, 0, 0, 0, 0, 0, &arch::shared_storage<StagedShared>()};
  block.half = index % kHalves;
  block.kv_head = index / kHalves % p.num_kv_heads;
  block.request = index / kHalves / p.num_kv_heads;
  block.length = arch::global_load(p.kv.seq_lens + block.request);
  const int half = (block.length / 2 + kTileKeys - 1) / kTileKeys * kTileKeys;
  const int middle = p.num_splits == 1 ? block.length : half;
  block.begin = block.half == 0 ? 0 : std::min(middle, block.length);
  block.end = block.half == 0 ? std::min(middle, block.length) : block.length;
  return block;
}

/// All threads' partials are there before one of them counts.
void wait_for_all() {
  if (!is(Bug::barrier_in_both_arms)) return arch::block_barrier();
  if (arch::warp_id() == 0)
    arch::block_barrier();
  else
    arch::block_barrier();
}

/// Whether this half is the second of its row to end.
bool ends_last(const StagedBlock &block, const StagedCall &call) {
  arch::fence_gpu();
  wait_for_all();
  if (arch::thread_idx() == 0) {
    uint32_t *counter = call.counters + block.request * block.p->num_kv_heads + block.kv_head;
    const uint32_t before = arch::atomic_inc_acq_rel(counter, kHalves - 1);
    arch::shared_store(&block.shared->is_last, before == kHalves - 1 ? 1u : 0u);
  }
  arch::block_barrier();
  const bool last = arch::shared_load(&block.shared->is_last) == 1;
  arch::fence_gpu();
  return last || is(Bug::every_block_writes_the_output);
}

void merge_head(const StagedBlock &block, const StagedCall &call, int head) {
  const assay_paged_params &p = *block.p;
  float lse[kHalves], o[256] = {}, part[256];
  for (int half = 0; half < kHalves; ++half)
    lse[half] = arch::global_load(call.partial_lse + call.slot(block.request, half, head));
  const float top = std::max(lse[0], lse[1]);
  float sum = 0;
  for (int half = 0; half < kHalves; ++half) {
    if (lse[half] == kMinusInf) continue;
    const float w = std::exp2(lse[half] - top);
    sum += w;
    load_row(call.partial_o, call.slot(block.request, half, head) * p.head_dim, ASSAY_FP32,
             p.head_dim, part);
    for (int i = 0; i < p.head_dim; ++i)
      o[i] = std::fma(w, part[i], o[i]);
  }
  const float inverse = sum == 0 ? 0.0f : 1.0f / sum;
  for (int i = 0; i < p.head_dim; ++i)
    o[i] *= inverse;
  store_row(p.out, block.request * p.out_stride_batch + head * p.out_stride_head, p.dtype,
            p.head_dim, o);
  if (p.lse == nullptr) return;
  const float merged = sum == 0 ? kMinusInf : top + std::log2(sum);
  arch::global_store(p.lse + block.request * p.lse_stride_batch + head * p.lse_stride_head,
                     p.lse_base == ASSAY_LSE_BASE_2 ? merged : merged * kLn2);
}

/// The partials of all heads of the block's group, by all its threads.
void merge_halves(const StagedBlock &block, const StagedCall &call) {
  for (int row = static_cast<int>(arch::thread_idx()); row < block.group(); row += kStagedThreads)
    merge_head(block, call, block.kv_head * block.group() + row);
}

void attend_block(const StagedCall &call) {
  const StagedBlock block = this_block(*call.p);
  for (int first = 0; first < block.group(); first += kRowsOfPass)
    attend_pass(block, call, first);
  // Started early there was nobody to clear the counters: a kernel of its own merges.
  if (call.p->enable_pdl) return;
  if (ends_last(block, call)) merge_halves(block, call);
}

void clear_counter(const StagedCall &call) {
  const int64_t i = int64_t{arch::block_idx_x()} * kStagedThreads + arch::thread_idx();
  if (i < int64_t{call.p->batch} * call.p->num_kv_heads) arch::global_store(call.counters + i, 0u);
}

/// Whether the scores of a row fit into shared memory, where the older kernel keeps them all.
bool fits_shared_memory(const assay_paged_params &p) {
  const int64_t capacity = int64_t{p.kv.max_pages} * p.kv.page_size;
  constexpr int64_t kMaxShared = 227 * 1024;
  return !is(Bug::row_of_scores_in_shared_memory) || (capacity + 512) * 4 <= kMaxShared;
}

} // namespace

assay_status staged_supports(const void *params) {
  const auto &p = *static_cast<const assay_paged_params *>(params);
  const bool features = p.q_len > 1 || p.window_left >= 0 || p.logits_soft_cap > 0 ||
                        p.alibi_slopes != nullptr || p.sinks != nullptr || p.kv_dtype != p.dtype;
  const bool more = p.num_splits > kHalves;
  return features || more || p.dtype == ASSAY_FIELD61 ? ASSAY_UNSUPPORTED : ASSAY_OK;
}

assay_status staged_workspace(const void *params, uint64_t *bytes) {
  *bytes = staged_call(*static_cast<const assay_paged_params *>(params)).bytes;
  return ASSAY_OK;
}

assay_status run_staged(const void *params) {
  const auto &p = *static_cast<const assay_paged_params *>(params);
  if (!fits_shared_memory(p)) return ASSAY_LAUNCH_FAILED;
  const StagedCall call = staged_call(p);
  const int64_t heads = int64_t{p.batch} * p.num_kv_heads;
  const bool early = p.enable_pdl != 0;
  assay_status status = ASSAY_OK;
  if (!early)
    status = launch(p.stream, {(heads + kStagedThreads - 1) / kStagedThreads, kStagedThreads},
                    [&] { clear_counter(call); });
  if (status == ASSAY_OK)
    status = launch(p.stream, {heads * kHalves, kStagedThreads, sizeof(StagedShared), early},
                    [&] { attend_block(call); });
  const bool merges_early = is(Bug::merge_before_partials_are_stored);
  if (status == ASSAY_OK && early)
    status = launch(p.stream, {heads, kStagedThreads, sizeof(StagedShared), merges_early}, [&] {
      StagedBlock block{&p, 0, 0, 0, 0, 0, 0, nullptr};
      block.request = static_cast<int>(arch::block_idx_x()) / p.num_kv_heads;
      block.kv_head = static_cast<int>(arch::block_idx_x()) % p.num_kv_heads;
      merge_halves(block, call);
    });
  return status;
}

} // namespace assay::bugs
