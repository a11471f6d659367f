// SPDX-License-Identifier: Apache-2.0
// paged_attention_v2: split-KV over a SplitPlan. Blocks write fp32 partials of the requests they
// share; whoever finishes a (request, unit) last merges its partials, in the same launch.
#pragma once

#include "kernels/common/merge_rows.cuh"
#include "kernels/decode/decode_core.cuh"
#include "kernels/plan/plan_kernel.cuh"

namespace assay::ASSAY_TARGET {

struct PagedAttentionV2Params {
  AttentionParams attention;
  PagedKvParams kv;
  FeatureParams features;
  SplitPlan plan;
  PartialParams partial;       // rows_per_slot = rows per block
  int32_t row_tiles_per_group; // plan.shape.units = num_kv_heads * row_tiles_per_group
};

/// The items of one block: its worker's, for its unit. The next item is loaded while the current
/// one is computed.
template <int kRows>
class PlanItems {
public:
  using Item = WorkItem;

  ASSAY_DEVICE PlanItems(const SplitPlan &plan, int row_tiles_per_group, int block) : plan_(plan) {
    const int worker = block / plan.shape.units;
    unit_ = block - worker * plan.shape.units;
    kv_head_ = unit_ / row_tiles_per_group;
    first_row_ = (unit_ - kv_head_ * row_tiles_per_group) * kRows;
    const WorkerItems *w = plan.workers + worker;
    const WorkItem head = load(&w->head);
    first_ = load(&w->first);
    request_ = arch::global_load_readonly(&w->request_begin);
    request_end_ = arch::global_load_readonly(&w->request_end);
    pending_ = head;
    if (head.num_splits == 0) advance();
  }

  ASSAY_DEVICE bool next(Item &item) {
    if (pending_.num_splits == 0) return false;
    item = pending_;
    advance();
    return true;
  }

  /// Which block of its worker this is: the same for all items.
  ASSAY_DEVICE int unit() const { return unit_; }
  ASSAY_DEVICE DecodeWork work_of(const Item &item) const {
    return {item.request, kv_head_, first_row_, item.kv_begin, item.kv_end, item.seq_len};
  }

private:
  static ASSAY_DEVICE WorkItem load(const WorkItem *p) {
    union {
      arch::Vec4 vectors[2];
      WorkItem item;
    } u;
    u.vectors[0] = arch::global_load_readonly(reinterpret_cast<const arch::Vec4 *>(p));
    u.vectors[1] = arch::global_load_readonly(reinterpret_cast<const arch::Vec4 *>(p) + 1);
    return u.item;
  }

  ASSAY_DEVICE void advance() {
    pending_.num_splits = 0;
    if (request_ >= request_end_) return;
    pending_ = first_.num_splits != 0 ? first_ : load(plan_.request_items + request_);
    first_.num_splits = 0;
    ++request_;
  }

  const SplitPlan &plan_;
  int unit_, kv_head_, first_row_;
  WorkItem pending_, first_;
  int request_, request_end_;
};

/// Merges the partials of a finished (request, unit) into O and LSE, in an order that does not
/// depend on who does it. Latency is all it costs (a load from L2 is 0.7 us, a row's arithmetic a
/// tenth of that), so everything that fits is in flight at once: the first partials beside the
/// LSEs, and threads without a slice of their own take a share of another's splits.
template <class Core>
ASSAY_DEVICE void merge_splits(const PagedAttentionV2Params &params, const WorkItem &item, int unit,
                               const DecodeWork &work) {
  using Number = typename Core::Number;
  constexpr int kRows = Core::kRows, kHeadDim = Core::kHeadDim, kSlices = Core::kSlices;
  constexpr int kThreads = Core::kThreads, kIdle = kThreads / (kRows * kSlices);
  // Sharers exchange sums by shuffles, so a row must be whole warps.
  constexpr int kSharers = kIdle > 1 && kIdle * kSlices % arch::kWarpSize == 0 ? kIdle : 1;
  // The next item's queries wait in registers meanwhile, up to 32 of them: what does not spill.
  constexpr bool kRoomy = kRows * kSlices <= kThreads;
  constexpr bool kLarge = kRows * kHeadDim > 1024 || kRows * Core::kPolicy.tile > 512;
  constexpr int kBatch = Core::kHooks ? (kLarge ? 1 : 4) : kLarge ? (kRoomy ? 3 : 2) : 8;
  auto &shared = arch::shared_storage<typename Core::SharedStorage>();
  Number *staged_lse = &shared.merge.o[0][0][0]; // dead since the last barrier
  constexpr int kCapacity = sizeof(shared.merge.o) / sizeof(Number) / kRows;
  const int left = params.features.rows - work.first_row, rows = left < kRows ? left : kRows;
  const int count = item.num_splits;
  const bool staged = count <= kCapacity;
  const SplitPlanShape &shape = params.plan.shape;
  const auto partial_row = [&](int split, int row) {
    return (item.slot(split, shape.slot_stride()) * shape.units + unit) * kRows + row;
  };
  const auto load_lse = [&](int split, int row) {
    return arch::global_load(words_of<Number>(params.partial.lse_accum) + partial_row(split, row));
  };
  const int thread = arch::thread_idx(), sharer = thread % kSharers;
  for (int first = 0; first < kRows * kSlices; first += kThreads / kSharers) {
    const int slice = first + thread / kSharers, row = slice / kSlices, dim = slice % kSlices * 8;
    const bool exists = row < rows;
    const auto load_o = [&](int i, Number(&o)[8]) {
      Pack8<Number>::load(words_of<Number>(params.partial.o_accum) +
                          partial_row(i, row) * kHeadDim + dim)
          .unpack(o);
    };
    const auto lse = [&](int i) {
      return staged ? arch::shared_load(staged_lse + i * kRows + row) : load_lse(i, row);
    };
    Number part[kBatch][8];
    if (exists) load_states(part, sharer, count, kSharers, load_o);
    if (first == 0) {
      for (int i = thread; staged && i < count * kRows; i += kThreads)
        if (i % kRows < rows) arch::shared_store(staged_lse + i, load_lse(i / kRows, i % kRows));
      arch::block_barrier();
    }
    if (!exists) continue;
    Number lse_max = arch::neg_infinity();
    ASSAY_UNROLL_BY(8)
    for (int i = 0; i < count; ++i)
      lse_max = arch::max_num(lse_max, lse(i));
    auto sum = sum_states(part, sharer, count, kSharers, lse_max, 1.0f, lse, load_o);
    ASSAY_UNROLL
    for (int mask = 1; mask < kSharers; mask *= 2) {
      sum.d += arch::shfl_xor(sum.d, mask);
      ASSAY_UNROLL
      for (int k = 0; k < 8; ++k)
        sum.o[k] += arch::shfl_xor(sum.o[k], mask);
    }
    const Number lse2 = sum.lse2(1.0f);
    sum.normalize();
    if (sharer == 0)
      Core::store_row(params.attention, params.features, work, row, dim, sum.o, lse2);
  }
}

/// Grid: plan.shape.workers * units blocks, the units of a worker adjacent. A request held whole
/// goes straight to O, any other to a slot.
template <class Core>
ASSAY_KERNEL((Core::kThreads), (Core::kPolicy.min_blocks))
paged_attention_v2(const ASSAY_GRID_CONSTANT PagedAttentionV2Params params) {
  const AttentionParams &attention = params.attention;
  const PlanItems<Core::kRows> items(params.plan, params.row_tiles_per_group, arch::block_idx_x());
  const int32_t stride = params.plan.shape.slot_stride(), units = params.plan.shape.units;
  const FeatureParams &features = params.features;
  const typename Core::BlockTeam team{};
  Core::run(attention, features, params.kv, team, items,
            [&](const WorkItem &item, auto merged, float scale) {
              const DecodeWork work = items.work_of(item);
              const bool whole = item.num_splits == 1;
              Core::for_each_slice(team, features, work.first_row, [&](int row, int dim) {
                auto slice = merged(row, dim);
                const auto lse2 = slice.lse2(scale);
                slice.normalize();
                if (whole)
                  Core::store_row(attention, features, work, row, dim, slice.o, lse2);
                else
                  store_partial<Core::kHeadDim>(
                      params.partial, item.slot(item.split, stride) * units + items.unit(), row,
                      dim, slice.o, lse2);
              });
              if (whole) return;
              // The barrier orders the block's stores before thread 0's release; its acquire and
              // the second barrier order the other blocks' stores before this block's loads. The
              // counter wraps to 0 by itself, ready for the next layer or graph replay.
              auto &shared = arch::shared_storage<typename Core::SharedStorage>();
              arch::block_barrier();
              if (arch::thread_idx() == 0) {
                uint32_t *counter =
                    params.plan.counters + int64_t{item.request} * units + items.unit();
                const uint32_t last = item.num_splits - 1;
                const uint32_t before = arch::atomic_inc_acq_rel(counter, last);
                arch::shared_store(&shared.is_last, before == last ? 1u : 0u);
              }
              arch::block_barrier();
              if (arch::shared_load(&shared.is_last) != 0u)
                merge_splits<Core>(params, item, items.unit(), work);
            });
}

} // namespace assay::ASSAY_TARGET
