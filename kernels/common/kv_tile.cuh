// SPDX-License-Identifier: Apache-2.0
// K and V tiles in shared memory: their layout, and how they are loaded through the page table.
#pragma once

#include "kernels/arch/async_copy.cuh"
#include "kernels/arch/shuffle.cuh"
#include "kernels/arch/thread.cuh"
#include "kernels/common/paged_kv.cuh"

namespace assay::ASSAY_TARGET {

/// [tokens][kRowBytes / 16] chunks of 16 bytes. The index of a chunk is XORed with its token, so
/// that the eight rows which ldmatrix reads at once fall into eight different bank groups. Two rows
/// of 64 bytes share a line of 128 bytes: there half the token is XORed.
template <int kRowBytes>
struct KvLayout {
  static constexpr int kChunks = kRowBytes / 16; // per token, a power of two >= 4
  static_assert(kChunks >= 4 && (kChunks & (kChunks - 1)) == 0);
  static ASSAY_DEVICE int index(int token, int chunk) {
    return token * kChunks + (chunk ^ swizzle(token));
  }

  /// index(token + first, chunk), computed from home = index(first, chunk). `token` and `first`
  /// must have no bit in common. With a constant token this takes one XOR and an immediate offset.
  static ASSAY_DEVICE int index_from(int home, int token) {
    return (home ^ swizzle(token)) + token * kChunks;
  }

private:
  static ASSAY_DEVICE int swizzle(int token) { return kChunks == 4 ? token / 2 & 3 : token & 7; }
};

/// Loads the part of a tile that one warp loads: kTokens (8, 16, 32 or 64) consecutive tokens. The
/// pages of a tile are looked up while the tile in front is computed, which hides the latency.
///
/// Tokens from `end` on do not count. With kClipBegin, tokens before `begin` do not either: a
/// window may start inside a tile. TileLayout is the layout of the whole tile.
template <class Kv, int kHeadDim, int kTokens, bool kClipBegin = false,
          class TileLayout = KvLayout<kHeadDim * sizeof(Kv)>>
class WarpTileLoader {
  using Layout = TileLayout;
  static constexpr int kChunk = 16 / sizeof(Kv); // elements
  static constexpr int kTokensPerPass = arch::kWarpSize / Layout::kChunks;
  static constexpr int kPasses = kTokens / kTokensPerPass;
  /// Tokens that one look-up may serve: 16, so that it does with pages of 16.
  static constexpr int kGroupTokens = kTokens < 16 ? kTokens : 16;
  static constexpr int kGroups = kTokens / kGroupTokens;
  /// Tokens that one lane looks up where groups do not serve: lane and lane + 32.
  static constexpr int kLaneTokens = kTokens <= arch::kWarpSize ? 1 : kTokens / arch::kWarpSize;
  static_assert(kTokens <= 2 * arch::kWarpSize && kTokens % 8 == 0 && kLaneTokens <= kGroups);
  static_assert(kPasses >= 1 && kPasses * kTokensPerPass == kTokens);
  static_assert(kTokensPerPass <= kGroupTokens);

public:
  WarpTileLoader() = default;
  ASSAY_DEVICE WarpTileLoader(const PagedKv<Kv> &kv, int begin, int end)
      : kv_(kv), begin_(begin), end_(end) {}

  /// Starts the look-ups for tokens base .. base + kTokens - 1. It reads no page-table entry of a
  /// token that does not count. One entry a group of 16 is enough where all tokens count and each
  /// group lies inside one page. With a page size that is a multiple of 16, so it is in every tile
  /// but the last. Otherwise lane t looks up tokens t and t + 32.
  ASSAY_DEVICE void prefetch_coords(const PagedKvParams &params, int base) {
    base_ = base;
    whole_pages_ = base + kTokens <= end_ && (!kClipBegin || base >= begin_);
    const uint32_t page_size = params.page_size.divisor;
    TokenCoord group = kv_.logical_coord(params, base);
    ASSAY_UNROLL
    for (int g = 0; g < kGroups; ++g) {
      if (g > 0) { // wrong only where the group in front is not inside a page
        group.slot += kGroupTokens;
        if (group.slot >= page_size) group = {group.page + 1, group.slot - page_size};
      }
      whole_pages_ = whole_pages_ && group.slot + kGroupTokens <= page_size;
      coord_[g] = group;
    }
    if (whole_pages_) {
      ASSAY_UNROLL
      for (int g = 0; g < kGroups; ++g)
        coord_[g] = kv_.look_up(params, coord_[g]);
      return;
    }
    ASSAY_UNROLL
    for (int i = 0; i < kLaneTokens; ++i) {
      coord_[i] = {0, 0};
      const int token = i * arch::kWarpSize + arch::lane_id();
      if (token < kTokens && is_live(base + token))
        coord_[i] = kv_.look_up(params, kv_.logical_coord(params, base + token));
    }
  }

  /// Copies the rows of K (kIsK) or V of the tokens that were looked up. A token that does not
  /// count becomes zeros: its weight of 0 times zero is 0, even where the cache holds NaN.
  template <bool kIsK>
  ASSAY_DEVICE void copy(const PagedKvParams &params, arch::Vec4 *tile) const {
    const int lane = arch::lane_id();
    const int chunk = lane % Layout::kChunks, first = lane / Layout::kChunks;
    const int home = Layout::index(first, chunk);
    if (whole_pages_) {
      ASSAY_UNROLL
      for (int g = 0; g < kGroups; ++g) {
        const Kv *row = kv_.template row<kIsK>(params, {coord_[g].page, coord_[g].slot + first}) +
                        chunk * kChunk;
        ASSAY_UNROLL
        for (int slot = 0; slot < kGroupTokens; slot += kTokensPerPass)
          arch::cp_async_16(tile + Layout::index_from(home, g * kGroupTokens + slot),
                            kv_.template later_row<kIsK>(params, row, slot), true);
      }
      return;
    }
    const Kv *own[kLaneTokens]; // addresses of tokens base_ + lane, base_ + lane + 32
    ASSAY_UNROLL
    for (int i = 0; i < kLaneTokens; ++i)
      own[i] = kv_.template row<kIsK>(params, coord_[i]);
    ASSAY_UNROLL
    for (int token = 0; token < kTokens; token += kTokensPerPass) {
      const Kv *row = arch::shfl_idx(own[token / arch::kWarpSize], token % arch::kWarpSize + first);
      arch::cp_async_16(tile + Layout::index_from(home, token), row + chunk * kChunk,
                        is_live(base_ + token + first));
    }
  }

private:
  ASSAY_DEVICE bool is_live(int token) const {
    return token < end_ && (!kClipBegin || token >= begin_);
  }

  PagedKv<Kv> kv_;
  int begin_ = 0, end_ = 0, base_ = 0;
  bool whole_pages_ = false;
  TokenCoord coord_[kGroups] = {};
};

} // namespace assay::ASSAY_TARGET
