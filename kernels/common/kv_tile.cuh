// SPDX-License-Identifier: Apache-2.0
// K and V tiles in shared memory: layout, and their asynchronous loading through the page table.
#pragma once

#include "kernels/arch/async_copy.cuh"
#include "kernels/arch/shuffle.cuh"
#include "kernels/arch/thread.cuh"
#include "kernels/common/paged_kv.cuh"

namespace assay::ASSAY_TARGET {

/// [tokens][head_dim] 16-bit elements in 16-byte chunks. The chunk index is XORed with the token
/// (mod 8), so the eight rows one ldmatrix phase reads fall into eight different bank groups.
template <int kHeadDim>
struct KvLayout {
  static constexpr int kChunks = kHeadDim / 8; // per token, a power of two >= 8
  static ASSAY_DEVICE int index(int token, int chunk) {
    return token * kChunks + (chunk ^ (token & 7));
  }
};

/// One warp's share of a tile: kTokens (8, 16 or 32) consecutive tokens. Places are looked up one
/// tile ahead, so the page-table latency hides behind the previous tile.
template <class E, int kHeadDim, int kTokens>
class WarpTileLoader {
  using Layout = KvLayout<kHeadDim>;
  static constexpr int kTokensPerPass = arch::kWarpSize / Layout::kChunks; // 4 (d 64), 2 (d 128)
  static constexpr int kPasses = kTokens / kTokensPerPass;
  static_assert(kTokens <= arch::kWarpSize && kTokens % 8 == 0);
  static_assert(kPasses >= 1 && kPasses * kTokensPerPass == kTokens);

public:
  WarpTileLoader() = default;
  ASSAY_DEVICE WarpTileLoader(const PagedKv<E> &kv, int end) : kv_(kv), end_(end) {}

  /// Starts the look-up for tokens base .. base + kTokens - 1; those at or past `end` are dead and
  /// their page-table entries are not read. A tile of live tokens inside one page (every tile but
  /// the last when the page size is a multiple of it) needs one entry; otherwise lane t looks up
  /// token t.
  ASSAY_DEVICE void prefetch_places(const PagedKvParams &params, int base) {
    base_ = base;
    place_ = {0, 0};
    const uint32_t first_page = divide(base, params.page_size);
    one_page_ =
        base + kTokens <= end_ && divide(base + kTokens - 1, params.page_size) == first_page;
    const int token = base + (one_page_ ? 0 : static_cast<int>(arch::lane_id()));
    if (token < end_ && (one_page_ || static_cast<int>(arch::lane_id()) < kTokens))
      place_ = kv_.locate(params, token);
  }

  /// Copies the looked-up tokens' rows of K (kIsK) or V; dead tokens become zeros: 0 * P stays 0
  /// even when the cache holds NaN there.
  template <bool kIsK>
  ASSAY_DEVICE void copy(const PagedKvParams &params, arch::Vec4 *tile) const {
    const int lane = arch::lane_id();
    const int chunk = lane % Layout::kChunks, first = lane / Layout::kChunks;
    if (one_page_) {
      const int64_t stride = kIsK ? params.k_stride_token : params.v_stride_token;
      const E *row = kv_.template row<kIsK>(params, {place_.page, place_.slot + first}) + chunk * 8;
      ASSAY_UNROLL
      for (int pass = 0; pass < kPasses; ++pass) {
        arch::cp_async_16(tile + Layout::index(pass * kTokensPerPass + first, chunk), row, true);
        row += kTokensPerPass * stride;
      }
      return;
    }
    ASSAY_UNROLL
    for (int pass = 0; pass < kPasses; ++pass) {
      const int token = pass * kTokensPerPass + first;
      const TokenPlace place = {arch::shfl_idx(place_.page, token),
                                arch::shfl_idx(place_.slot, token)};
      arch::cp_async_16(tile + Layout::index(token, chunk),
                        kv_.template row<kIsK>(params, place) + chunk * 8, base_ + token < end_);
    }
  }

private:
  PagedKv<E> kv_;
  int end_ = 0, base_ = 0;
  bool one_page_ = false;
  TokenPlace place_ = {0, 0};
};

} // namespace assay::ASSAY_TARGET
