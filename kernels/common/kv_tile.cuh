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
  static constexpr int kChunks = kHeadDim / 8; // per token
  static ASSAY_DEVICE int index(int token, int chunk) {
    return token * kChunks + (chunk ^ (token & 7));
  }
};

/// One warp's share of a tile: kTokens (8, 16 or 32) consecutive tokens. Lane t looks up token t's
/// page one tile ahead, so the page-table latency hides behind the previous tile.
template <class E, int kHeadDim, int kTokens>
class WarpTileLoader {
  using Layout = KvLayout<kHeadDim>;
  static constexpr int kTokensPerPass = arch::kWarpSize / Layout::kChunks; // 4 (d 64), 2 (d 128)
  static constexpr int kPasses = kTokens / kTokensPerPass;
  static_assert(kTokens <= arch::kWarpSize && kTokens % 8 == 0);
  static_assert(kPasses >= 1 && kPasses * kTokensPerPass == kTokens);

public:
  ASSAY_DEVICE WarpTileLoader(const PagedKv<E> &kv, int end) : kv_(kv), end_(end) {}

  /// Starts the look-up for tokens base .. base + kTokens - 1; those at or past `end` are dead and
  /// their page-table entries are not read.
  ASSAY_DEVICE void prefetch_places(int base) {
    base_ = base;
    const int token = base + static_cast<int>(arch::lane_id());
    place_ = {0, 0};
    if (static_cast<int>(arch::lane_id()) < kTokens && token < end_) place_ = kv_.locate(token);
  }

  /// Copies the looked-up tokens' rows of K (or V); dead tokens become zeros: 0 * P stays 0 even
  /// when the cache holds NaN there.
  ASSAY_DEVICE void copy_k(arch::Vec4 *tile) const { copy<true>(tile); }
  ASSAY_DEVICE void copy_v(arch::Vec4 *tile) const { copy<false>(tile); }

private:
  template <bool kIsK>
  ASSAY_DEVICE void copy(arch::Vec4 *tile) const {
    const int lane = arch::lane_id();
    const int chunk = lane % Layout::kChunks;
    ASSAY_UNROLL
    for (int pass = 0; pass < kPasses; ++pass) {
      const int token = pass * kTokensPerPass + lane / Layout::kChunks;
      const TokenPlace place = {arch::shfl_idx(place_.page, token),
                                arch::shfl_idx(place_.slot, token)};
      const E *row = kIsK ? kv_.k_row(place) : kv_.v_row(place);
      arch::cp_async_16(tile + Layout::index(token, chunk), row + chunk * 8, base_ + token < end_);
    }
  }

  const PagedKv<E> &kv_;
  int end_;
  int base_ = 0;
  TokenPlace place_ = {0, 0};
};

} // namespace assay::ASSAY_TARGET
