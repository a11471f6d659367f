// SPDX-License-Identifier: Apache-2.0
// The producer of a Sm90Core block: four warps, which copy K and V through the page table.
#pragma once

#include "kernels/arch/async_copy.cuh"
#include "kernels/arch/convert.cuh"
#include "kernels/arch/load_store.cuh"
#include "kernels/arch/sync.cuh"
#include "kernels/arch/wgmma.cuh"
#include "kernels/blocks/sm90_ring.cuh"
#include "kernels/common/decode_types.cuh"
#include "kernels/common/kv_tile.cuh"

namespace assay::ASSAY_TARGET {

/// A warp copies its own tokens of every tile. Elements of 16 bits go straight into the ring. The
/// bytes of an fp8 cache first go to stages of the warp; from these it widens them into the ring.
template <class Types, int kHeadDim>
class Sm90Producer {
public:
  using Kv = typename Types::Kv;
  static constexpr Sm90Policy kPolicy = sm90_policy(kHeadDim, sizeof(Kv));
  static constexpr int kTile = kPolicy.tile, kWarps = 4, kWarpTokens = kTile / kWarps;
  using Matrix = Sm90Layout<kTile, kHeadDim>;
  using Ring = Sm90Ring<kPolicy.slots, Matrix>;

private:
  static constexpr bool kWidens = Types::kFp8;
  /// Copies of so many matrices are in flight while another one is issued.
  static constexpr int kAhead = kPolicy.ahead, kStages = kAhead + 1;
  static_assert(kPolicy.slots % kStages == 0); // matrix i has slot i % slots and stage i % kStages
  using StageLayout = KvLayout<kHeadDim>;
  using Layout = std::conditional_t<kWidens, StageLayout, Matrix>;
  using Loader = WarpTileLoader<Kv, kHeadDim, kWarpTokens, false, Layout>;

  struct Nothing {};
  struct WarpStages {
    arch::Vec4 stages[kStages][kWarps][kWarpTokens * StageLayout::kChunks];
  };

public:
  using SharedStorage = std::conditional_t<kWidens, WarpStages, Nothing>;

  ASSAY_DEVICE Sm90Producer(Ring &ring, SharedStorage &own) : ring_(ring), own_(own) {}

  /// Sm90Core tells what a Work has.
  template <class Params, class Work>
  ASSAY_DEVICE void produce(const Params &params, const Work &work) {
    const PagedKvParams &kv = work.keys(params);
    Loader loader(PagedKv<Kv>(kv, work.segment, work.kv_head), work.kv_begin, work.kv_end);
    int flying = 0;
    const auto copy = [&](auto is_k) {
      loader.template copy<decltype(is_k)::value>(kv, target(flying));
      arch::cp_async_commit();
      if (flying < kAhead) {
        ++flying;
        return;
      }
      arch::cp_async_wait<kAhead>();
      publish();
    };
    loader.prefetch_coords(kv, work.kv_begin + first_token());
    ASSAY_UNROLL_BY(1)
    for (int base = work.kv_begin; base < work.kv_end; base += kTile) {
      copy(std::true_type{});
      copy(std::false_type{});
      if (base + kTile < work.kv_end) loader.prefetch_coords(kv, base + kTile + first_token());
    }
    arch::cp_async_wait<0>();
    for (; flying > 0; --flying)
      publish();
  }

private:
  static ASSAY_DEVICE int warp() { return static_cast<int>(arch::warp_id()) % kWarps; }
  static ASSAY_DEVICE int first_token() { return warp() * kWarpTokens; }

  /// Where the next copy goes, while `flying` others are in flight. A stage is free by then: the
  /// lanes that write it have widened what they had there.
  ASSAY_DEVICE arch::Vec4 *target([[maybe_unused]] int flying) {
    if constexpr (kWidens) {
      return own_.stages[(signal_.slot + flying) % kStages][warp()];
    } else {
      arch::mbarrier_wait(&ring_.empty[issue_.slot], issue_.round ^ 1);
      arch::Vec4 *slot = ring_.slots[issue_.slot] + first_token() * 8;
      issue_.advance();
      return slot;
    }
  }

  /// Gives the oldest copy, which has arrived, to the consumers.
  ASSAY_DEVICE void publish() {
    if constexpr (kWidens) {
      arch::mbarrier_wait(&ring_.empty[signal_.slot], signal_.round ^ 1);
      widen(own_.stages[signal_.slot % kStages][warp()], ring_.slots[signal_.slot]);
    }
    arch::fence_async_proxy();
    arch::warp_barrier();
    if (arch::lane_id() == 0) arch::mbarrier_arrive(&ring_.full[signal_.slot]);
    signal_.advance();
  }

  /// Every lane widens what it copied itself (WarpTileLoader): its own wait is enough.
  static ASSAY_DEVICE void widen(const arch::Vec4 *stage, arch::Vec4 *slot) {
    constexpr int kChunks = StageLayout::kChunks, kTokens = arch::kWarpSize / kChunks;
    const int lane = static_cast<int>(arch::lane_id()), chunk = lane % kChunks;
    // NOTE: the loop widens one token at a time. Two do not fit in the registers of a producer.
    ASSAY_UNROLL_BY(1)
    for (int token = lane / kChunks; token < kWarpTokens; token += kTokens) {
      const arch::Vec4 bytes = arch::shared_load(stage + StageLayout::index(token, chunk));
      const int row = first_token() + token;
      arch::shared_store(slot + Matrix::index(row, 2 * chunk), widened(bytes.x, bytes.y));
      arch::shared_store(slot + Matrix::index(row, 2 * chunk + 1), widened(bytes.z, bytes.w));
    }
  }

  static ASSAY_DEVICE arch::Vec4 widened(uint32_t first, uint32_t second) {
    uint32_t a[2], b[2];
    arch::widen4<typename Types::Mma, Kv>(first, a);
    arch::widen4<typename Types::Mma, Kv>(second, b);
    return {a[0], a[1], b[0], b[1]};
  }

  Ring &ring_;
  SharedStorage &own_;
  Sm90Cursor<kPolicy.slots> issue_, signal_;
};

} // namespace assay::ASSAY_TARGET
