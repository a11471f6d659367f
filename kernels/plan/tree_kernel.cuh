// SPDX-License-Identifier: Apache-2.0
// The finder of prefix trees on the device: one block makes the tree of a plan buffer from page
// tables and lengths.
#pragma once

#include "kernels/plan/find_prefix_tree.h"
#include "kernels/plan/plan_kernel.cuh"

namespace assay::ASSAY_TARGET {

struct TreeKernelParams {
  TreeInput input;
  TreeOutput output;

  ASSAY_FIELDS(input.shape.batch, input.shape.query_rows, input.shape.q_len, input.shape.kv_heads,
               input.shape.head_dim, input.shape.kv_bytes, input.shape.page_size, input.shape.tile,
               input.shape.blocks, input.shape.splits, input.shape.max_rows, input.page_table,
               input.seq_lens, input.page_table_stride, input.page_indptr, output.items,
               output.coords, output.members, output.covered)
};

/// The device as a Side of TreeFinder.
template <int kThreads>
struct DeviceSide {
  static constexpr int kWarps = kThreads / arch::kWarpSize;

  template <class T>
  ASSAY_DEVICE T get(const T *p) const {
    return arch::shared_load(p);
  }
  template <class T>
  ASSAY_DEVICE void set(T *p, T value) const {
    arch::shared_store(p, value);
  }
  template <class T>
  ASSAY_DEVICE void set_by_one(T *p, T value) const {
    if (arch::lane_id() == 0) arch::shared_store(p, value);
  }
  ASSAY_DEVICE int32_t load(const int32_t *p) const { return arch::global_load_readonly(p); }
  template <class T>
  ASSAY_DEVICE void store(T *p, T value) const {
    arch::global_store(p, value);
  }
  template <class T>
  ASSAY_DEVICE void store_record(T *p, const T &value) const {
    ASSAY_TARGET::store_record(p, value);
  }
  template <class F>
  ASSAY_DEVICE void each(int n, F f) const {
    for (int i = static_cast<int>(arch::thread_idx()); i < n; i += kThreads)
      f(i);
    arch::block_barrier();
  }
  template <class F>
  ASSAY_DEVICE void each_by_warp(int n, F f) const {
    for (int i = static_cast<int>(arch::warp_id()); i < n; i += kWarps)
      f(i);
    arch::block_barrier();
  }
  template <class F>
  ASSAY_DEVICE int32_t sum(int n, F f) const {
    int32_t total = 0;
    for (int i = static_cast<int>(arch::lane_id()); i < n; i += arch::kWarpSize)
      total += f(i);
    ASSAY_UNROLL
    for (uint32_t mask = 1; mask < arch::kWarpSize; mask *= 2)
      total += arch::shfl_xor(total, mask);
    return total;
  }
  template <class F>
  ASSAY_DEVICE int32_t least(int n, F f) const {
    int32_t found = -1;
    const auto take = [&](int32_t v) {
      if (v >= 0 && (found < 0 || v < found)) found = v;
    };
    for (int i = static_cast<int>(arch::lane_id()); i < n; i += arch::kWarpSize)
      take(f(i));
    ASSAY_UNROLL
    for (uint32_t mask = 1; mask < arch::kWarpSize; mask *= 2)
      take(arch::shfl_xor(found, mask));
    return found;
  }
  /// Each lane has four pages in flight.
  ASSAY_DEVICE int32_t shared_pages(const TreeInput &in, int32_t a, int32_t b, int32_t first,
                                    int32_t count) const {
    constexpr int kBatch = 4;
    const auto word = [&](const int32_t *p) { return load(p); };
    const int32_t *x = in.list_of(a, word), *y = in.list_of(b, word);
    for (; first < count; first += kBatch * arch::kWarpSize) {
      int32_t pages[kBatch][2];
      ASSAY_UNROLL
      for (int i = 0; i < kBatch; ++i) {
        const int32_t page = first + i * arch::kWarpSize + static_cast<int>(arch::lane_id());
        const int32_t live = page < count ? page : first;
        pages[i][0] = load(x + live);
        pages[i][1] = load(y + live);
      }
      ASSAY_UNROLL
      for (int i = 0; i < kBatch; ++i) {
        const int32_t page = first + i * arch::kWarpSize;
        const bool differ =
            page + static_cast<int>(arch::lane_id()) < count && pages[i][0] != pages[i][1];
        const uint32_t mask = arch::ballot(differ);
        if (mask == 0) continue;
        int lane = 0;
        while ((mask >> lane & 1) == 0)
          ++lane;
        return page + lane;
      }
    }
    return count;
  }
};

template <int kThreads>
ASSAY_KERNEL(kThreads, 1)
tree_kernel(const ASSAY_GRID_CONSTANT TreeKernelParams params) {
  TreeFinder<DeviceSide<kThreads>>(params.input, params.output, arch::shared_storage<TreeScratch>(),
                                   DeviceSide<kThreads>{})
      .run();
}

} // namespace assay::ASSAY_TARGET
