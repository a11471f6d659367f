// SPDX-License-Identifier: Apache-2.0
// How a block of a split-KV kernel walks its part of a plan.
#pragma once

#include "kernels/arch/load_store.cuh"
#include "kernels/blocks/decode_core.cuh"
#include "kernels/plan/split_plan.h"

namespace assay::ASSAY_TARGET {

/// The items of one block: those of its worker, for its head tile. The next item is loaded while
/// the current one is computed. DecodeCore tells of kWaits.
template <int kRows, bool kWaits_ = true>
class PlanItems {
public:
  using Item = WorkItem;
  static constexpr bool kWaits = kWaits_;

  ASSAY_DEVICE PlanItems(const SplitPlan &plan, int tiles_per_kv_head, int block) : plan_(plan) {
    const int worker = block / plan.shape.head_tiles;
    head_tile_ = block - worker * plan.shape.head_tiles;
    kv_head_ = head_tile_ / tiles_per_kv_head;
    first_row_ = (head_tile_ - kv_head_ * tiles_per_kv_head) * kRows;
    const WorkerItems *w = plan.workers + worker;
    const WorkItem head = load(&w->head);
    first_ = load(&w->first);
    next_ = arch::global_load_readonly(&w->begin);
    end_ = arch::global_load_readonly(&w->end);
    empty_begin_ = arch::global_load_readonly(&w->empty_begin);
    empty_end_ = arch::global_load_readonly(&w->empty_end);
    pending_ = head;
    if (head.num_splits == 0) advance();
  }

  ASSAY_DEVICE bool next(Item &item) {
    if (pending_.num_splits == 0) return false;
    item = pending_;
    advance();
    return true;
  }

  /// Calls f(work) for the requests without keys of this worker. The time of a few of them is
  /// hidden by the loads that are in flight for the first item.
  template <class F>
  ASSAY_DEVICE void for_each_empty(F f) const {
    ASSAY_UNROLL_BY(1)
    for (int i = empty_begin_; i < empty_end_; ++i) {
      const int request = arch::global_load_readonly(&plan_.request_items[i].request);
      f(DecodeWork{request, kv_head_, first_row_, 0, 0, 0});
    }
  }

  /// Which block of its worker this is. It attends this head tile of every item.
  ASSAY_DEVICE int head_tile() const { return head_tile_; }
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
    if (next_ >= end_) return;
    pending_ = first_.num_splits != 0 ? first_ : load(plan_.request_items + next_);
    first_.num_splits = 0;
    ++next_;
  }

  const SplitPlan &plan_;
  int head_tile_, kv_head_, first_row_;
  WorkItem pending_, first_;
  int next_, end_; // indices in request_items
  int empty_begin_, empty_end_;
};

} // namespace assay::ASSAY_TARGET
