// SPDX-License-Identifier: Apache-2.0
// The finder of prefix trees on the device: one block makes the tree of a plan buffer from page
// tables and lengths, and then the plan of the unique suffixes.
#pragma once

#include "kernels/plan/find_prefix_tree.h"
#include "kernels/plan/plan_kernel.cuh"

namespace assay::ASSAY_TARGET {

struct TreeKernelParams {
  TreeInput input;
  TreeOutput output;
  PlanParams plan; // of the unique suffixes: output.covered is among its input

  ASSAY_FIELDS(input.shape.batch, input.shape.query_rows, input.shape.q_len, input.shape.kv_heads,
               input.shape.head_dim, input.shape.kv_bytes, input.shape.page_size, input.shape.tile,
               input.shape.blocks, input.shape.splits, input.shape.max_rows, input.page_table,
               input.seq_lens, input.page_table_stride, input.page_indptr, output.items,
               output.coords, output.members, output.covered, plan)
};

/// The device as a Side of TreeFinder.
template <int kThreads>
struct DeviceSide {
  static constexpr int kWarp = arch::kWarpSize, kWarps = kThreads / kWarp;

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
  ASSAY_DEVICE auto sum(int n, F f) const {
    decltype(f(0)) total{};
    for (int i = static_cast<int>(arch::lane_id()); i < n; i += arch::kWarpSize)
      total += f(i);
    ASSAY_UNROLL
    for (uint32_t mask = 1; mask < arch::kWarpSize; mask *= 2)
      total += arch::shfl_xor(total, mask);
    return total;
  }
  template <class F>
  ASSAY_DEVICE auto least(int n, F f) const {
    decltype(f(0)) found = -1;
    const auto take = [&](decltype(f(0)) v) {
      if (v >= 0 && (found < 0 || v < found)) found = v;
    };
    for (int i = static_cast<int>(arch::lane_id()); i < n; i += arch::kWarpSize)
      take(f(i));
    ASSAY_UNROLL
    for (uint32_t mask = 1; mask < arch::kWarpSize; mask *= 2)
      take(arch::shfl_xor(found, mask));
    return found;
  }

  /// Sorts bitonically. Strides below a warp stay in its registers, 32 keys a warp; larger ones go
  /// through shared memory.
  ASSAY_DEVICE void sort(int64_t *keys, int n) const {
    int size = kWarp;
    while (size < n)
      size *= 2;
    each(size - n, [&](int i) { set(keys + n + i, kNoPage); });
    sort_in_warps(keys, size, 2, kWarp);
    for (int length = 2 * kWarp; length <= size; length *= 2) {
      for (int stride = length / 2; stride >= kWarp; stride /= 2)
        each(size / 2, [&](int i) {
          const int low = 2 * i - (i & (stride - 1)), high = low + stride;
          const int64_t a = get(keys + low), b = get(keys + high);
          if ((a > b) == ((low & length) != 0)) return;
          set(keys + low, b);
          set(keys + high, a);
        });
      sort_in_warps(keys, size, length, length);
    }
  }
  /// The stages of strides below a warp, of lengths from `first` to `last`.
  ASSAY_DEVICE void sort_in_warps(int64_t *keys, int size, int first, int last) const {
    each_by_warp(size / kWarp, [&](int i) {
      const int lane = static_cast<int>(arch::lane_id()), place = i * kWarp + lane;
      int64_t key = get(keys + place);
      for (int length = first; length <= last; length *= 2)
        for (int stride = length < kWarp ? length / 2 : kWarp / 2; stride > 0; stride /= 2) {
          const int64_t other = arch::shfl_xor(key, stride);
          const bool takes_larger = ((lane & stride) != 0) != ((place & length) != 0);
          if (takes_larger ? other > key : other < key) key = other;
        }
      set(keys + place, key);
    });
  }

  template <class F>
  ASSAY_DEVICE int32_t prefix(int n, F f, int32_t *sums) const {
    int32_t *of_warps = arch::shared_storage<TreeScratch>().of_warps;
    int32_t total = 0;
    for (int first = 0; first < n; first += kThreads) {
      const int i = first + static_cast<int>(arch::thread_idx());
      const int32_t own = i < n ? f(i) : 0, sum = warp_prefix_sum(own);
      if (arch::lane_id() == arch::kWarpSize - 1)
        arch::shared_store(of_warps + arch::warp_id(), sum);
      arch::block_barrier();
      int32_t before = total + sum - own;
      for (int w = 0; w < kWarps && first + w * kWarp < n; ++w) {
        const int32_t of_warp = arch::shared_load(of_warps + w);
        total += of_warp;
        if (w < static_cast<int>(arch::warp_id())) before += of_warp;
      }
      if (i < n) set(sums + i, before);
      arch::block_barrier(); // the sums of warps are rewritten in the next round
    }
    return total;
  }

  /// Each lane has four pages of either row in flight: 32 warps then ask for 32 KB. Eight took 0.98
  /// to 1.14 of the time with a warm L2, and 0.88 to 1.09 with a cold one.
  ASSAY_DEVICE int32_t shared_pages(const TreeInput &in, int32_t a, int32_t b, int32_t first,
                                    int32_t count) const {
    constexpr int kBatch = 4;
    const auto word = [&](const int32_t *p) { return load(p); };
    const int32_t *x = in.list_of(a, word), *y = in.list_of(b, word);
    for (; first < count; first += kBatch * kWarp) {
      int32_t pages[kBatch][2];
      ASSAY_UNROLL
      for (int i = 0; i < kBatch; ++i) {
        const int32_t page = first + i * kWarp + static_cast<int>(arch::lane_id());
        const int32_t live = page < count ? page : first;
        pages[i][0] = load(x + live);
        pages[i][1] = load(y + live);
      }
      uint32_t differ = 0; // bit i: of the pages of this lane
      ASSAY_UNROLL
      for (int i = 0; i < kBatch; ++i) {
        const int32_t page = first + i * kWarp + static_cast<int>(arch::lane_id());
        differ |= page < count && pages[i][0] != pages[i][1] ? 1u << i : 0;
      }
      if (arch::any(differ != 0)) return first + first_of(differ);
    }
    return count;
  }

private:
  /// The place of the first bit that is set: bit i of a lane is at i * kWarp + lane.
  ASSAY_DEVICE static int32_t first_of(uint32_t bits) {
    for (int i = 0;; ++i) {
      const uint32_t lanes = arch::ballot((bits >> i & 1) != 0);
      for (int lane = 0; lanes != 0; ++lane)
        if ((lanes >> lane & 1) != 0) return i * kWarp + lane;
    }
  }
};

union TreeKernelStorage {
  TreeScratch tree;
  PlanSharedStorage plan;
};

template <int kThreads>
ASSAY_KERNEL(kThreads, 1)
tree_kernel(const ASSAY_GRID_CONSTANT TreeKernelParams params) {
  TreeFinder<DeviceSide<kThreads>>(params.input, params.output, arch::shared_storage<TreeScratch>(),
                                   DeviceSide<kThreads>{})
      .run();
  static_assert(kMaxTreeBatch <= kStagedRequests);
  write_staged_plan<kThreads>(params.plan);
}

} // namespace assay::ASSAY_TARGET
