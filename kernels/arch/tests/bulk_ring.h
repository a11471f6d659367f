// SPDX-License-Identifier: Apache-2.0
// A ring of three stages that bulk tensor copies fill and two consumers read, and what may be wrong
// about such a kernel: one mistake at a time.
#pragma once

#include "kernels/arch/bulk_copy.cuh"
#include "kernels/arch/load_store.cuh"
#include "kernels/arch/shared_storage.cuh"

namespace assay::ASSAY_TARGET::arch_test {

enum class Mistake {
  kNone,
  // waits and arrivals
  kFullNotAwaited,
  kFullWrongPhase,
  kEmptyNotAwaited,
  kEmptyWrongPhase,
  kEmptyOneConsumer, // the count of the barrier
  kReleasedBeforeRead,
  kReleasedByEachLane,
  kReleasedWithoutWarpBarrier,
  kOtherStageSignalled,
  kOtherStageFilled,
  kExtraArrival,
  // bytes
  kExpectsOneBox,
  kExpectsHalfOfEach,
  kExpectsTwice,
  kExpectsValidRowsOnly, // of the last tile, which reaches past the end
  kExpectsWiderElements,
  kNothingExpected,
  kArrivesBeforeExpect,
  kExpectsFirstTileOnly,
  // fences
  kInitNotFenced,
  kInitWithoutBarrier,
  kInitBehindBarrier,
  kZeroesNotFenced,   // the slot is zeroed by ordinary stores first
  kZeroesNotAwaited,  // or no barrier is behind them
  kSourceWrittenHere, // by this kernel
  // copies
  kCopiedByEachLane,
  kCopiedTwice,
  kSlotMisaligned,
  kSwizzledAt128,
  kMapNotMade,
  kTailCopiedByHand, // the rows that exist, by a 1-D copy, and the others left out
  kTailPastTheEnd,   // a 1-D copy of all rows
  kSizeNotOf16,
  kScratchInSlot, // a consumer writes to the slot that it reads
  kLastNotAwaited,
  kProducerReads,    // what it has copied
  kSourceOverwritten // while copies read it
};
inline constexpr int kMistakes = static_cast<int>(Mistake::kSourceOverwritten);

inline constexpr int kRingStages = 3, kBoxRows = 16, kBoxVectors = kBoxRows * 8, kTiles = 7;
inline constexpr int kTensorRows = kTiles * kBoxRows - 4; // the last one has 12
inline constexpr uint32_t kRingBoxBytes = kBoxRows * 128;

/// A slot has a box of each tensor.
struct RingStorage {
  alignas(1024) arch::Vec4 slots[kRingStages][2][kBoxVectors];
  arch::Vec4 spare[8];
  arch::Mbarrier full[kRingStages], empty[kRingStages];
};

struct RingParams {
  arch::TensorMap maps[2]; // rows of 64 elements of 16 bits
  arch::TensorMap no_map;  // not made
  arch::Vec4 *data[2];
  uint32_t *out; // [64], a sum per thread of a consumer
};

inline arch::TensorShape ring_shape(const void *data) {
  arch::TensorShape shape;
  shape.data = data;
  shape.rank = 2;
  shape.size[0] = shape.box[0] = 64;
  shape.size[1] = kTensorRows;
  shape.stride[1] = 128;
  shape.box[1] = kBoxRows;
  shape.swizzle = arch::Swizzle::k128Bytes;
  return shape;
}

class Ring {
public:
  static constexpr int kThreads = 96;

  ASSAY_DEVICE Ring(const RingParams &params, Mistake mistake)
      : params_(params), mistake_(mistake), shared_(arch::shared_storage<RingStorage>()) {}

  ASSAY_DEVICE void run() {
    if (is(Mistake::kInitBehindBarrier)) arch::block_barrier();
    if (arch::thread_idx() == 0) init();
    if (is(Mistake::kZeroesNotFenced)) zero();
    if (!is(Mistake::kInitWithoutBarrier) && !is(Mistake::kInitBehindBarrier))
      arch::block_barrier();
    if (is(Mistake::kZeroesNotAwaited)) zero();
    if (warp() == 0)
      produce();
    else
      consume();
  }

private:
  ASSAY_DEVICE bool is(Mistake m) const { return mistake_ == m; }
  static ASSAY_DEVICE int warp() { return static_cast<int>(arch::warp_id()); }
  static ASSAY_DEVICE int next(int stage) { return (stage + 1) % kRingStages; }
  static ASSAY_DEVICE int lane() { return static_cast<int>(arch::lane_id()); }

  ASSAY_DEVICE void init() {
    for (int s = 0; s < kRingStages; ++s) {
      arch::mbarrier_init(&shared_.full[s], 1);
      arch::mbarrier_init(&shared_.empty[s], is(Mistake::kEmptyOneConsumer) ? 1 : 2);
    }
    if (!is(Mistake::kInitNotFenced)) arch::fence_mbarrier_init();
  }
  ASSAY_DEVICE void zero() {
    if (warp() != 2) return;
    for (int i = lane(); i < kBoxVectors; i += 32)
      arch::shared_store(&shared_.slots[0][0][i], arch::Vec4{});
    if (!is(Mistake::kZeroesNotFenced)) arch::fence_async_proxy();
  }

  ASSAY_DEVICE uint32_t expected(int tile) const {
    if (is(Mistake::kExpectsOneBox)) return kRingBoxBytes;
    if (is(Mistake::kExpectsHalfOfEach)) return kRingBoxBytes;
    if (is(Mistake::kExpectsTwice)) return 4 * kRingBoxBytes;
    if (is(Mistake::kExpectsWiderElements)) return 2 * kBoxRows * 64 * 4;
    if ((is(Mistake::kExpectsValidRowsOnly) || is(Mistake::kTailCopiedByHand)) &&
        tile == kTiles - 1)
      return 2 * 128 * (kTensorRows - tile * kBoxRows);
    return 2 * kRingBoxBytes;
  }

  ASSAY_DEVICE void signal(int stage, int tile) {
    arch::Mbarrier *full = &shared_.full[stage];
    if (is(Mistake::kNothingExpected) || (is(Mistake::kExpectsFirstTileOnly) && tile > 0))
      return arch::mbarrier_arrive(full);
    if (is(Mistake::kArrivesBeforeExpect)) {
      arch::mbarrier_arrive(full);
      return arch::mbarrier_expect_tx(full, expected(tile));
    }
    arch::mbarrier_arrive_expect_tx(full, expected(tile));
    if (is(Mistake::kExtraArrival)) arch::mbarrier_arrive(full);
  }

  ASSAY_DEVICE void copy(int box, int stage, int tile) {
    const int32_t at[2] = {0, tile * kBoxRows};
    arch::Mbarrier *full = &shared_.full[is(Mistake::kOtherStageSignalled) ? next(stage) : stage];
    arch::Vec4 *slot = shared_.slots[is(Mistake::kOtherStageFilled) ? next(stage) : stage][box];
    if (is(Mistake::kSlotMisaligned)) slot += 1;
    if (is(Mistake::kSwizzledAt128)) slot += 8;
    const arch::Vec4 *rows = params_.data[box] + tile * kBoxVectors;
    const bool tail = tile == kTiles - 1;
    if (is(Mistake::kTailCopiedByHand) && tail) {
      constexpr uint32_t kBytes = (kTensorRows % kBoxRows) * 128;
      return arch::bulk_copy(slot, rows, kBytes, full);
    }
    if (is(Mistake::kTailPastTheEnd) && tail)
      return arch::bulk_copy(slot, rows, kRingBoxBytes, full);
    if (is(Mistake::kSizeNotOf16)) return arch::bulk_copy(slot, rows, kRingBoxBytes - 8, full);
    if (is(Mistake::kMapNotMade)) return arch::tensor_copy(slot, params_.no_map, at, full);
    arch::tensor_copy(slot, params_.maps[box], at, full);
  }

  ASSAY_DEVICE void produce() {
    if (!is(Mistake::kCopiedByEachLane) && lane() != 0) return;
    if (is(Mistake::kSourceWrittenHere))
      arch::global_store(params_.data[1] + kBoxVectors, arch::Vec4{1, 2, 3, 4});
    for (int tile = 0; tile < kTiles; ++tile) {
      const int stage = tile % kRingStages;
      const uint32_t round = static_cast<uint32_t>(tile / kRingStages) & 1;
      if (!is(Mistake::kEmptyNotAwaited))
        arch::mbarrier_wait(&shared_.empty[stage],
                            is(Mistake::kEmptyWrongPhase) ? round : round ^ 1);
      if (lane() == 0) signal(stage, tile);
      copy(0, stage, tile);
      copy(1, stage, tile);
      if (is(Mistake::kCopiedTwice)) copy(1, stage, tile);
      if (is(Mistake::kSourceOverwritten))
        arch::global_store(params_.data[0] + tile * kBoxVectors, arch::Vec4{});
      if (is(Mistake::kProducerReads)) sum_ += arch::shared_load(&shared_.slots[stage][0][0]).x;
    }
  }

  ASSAY_DEVICE void consume() {
    uint32_t sum = 0;
    const int tiles = is(Mistake::kLastNotAwaited) ? kTiles - 1 : kTiles;
    for (int tile = 0; tile < tiles; ++tile) {
      const int stage = tile % kRingStages;
      const uint32_t round = static_cast<uint32_t>(tile / kRingStages) & 1;
      if (!is(Mistake::kFullNotAwaited))
        arch::mbarrier_wait(&shared_.full[stage], is(Mistake::kFullWrongPhase) ? round ^ 1 : round);
      if (is(Mistake::kReleasedBeforeRead)) release(stage);
      for (auto &box : shared_.slots[stage])
        for (int i = lane(); i < kBoxVectors; i += 32) {
          const arch::Vec4 v = arch::shared_load(&box[i]);
          sum += v.x + v.y + v.z + v.w;
        }
      if (is(Mistake::kScratchInSlot))
        arch::shared_store(&shared_.slots[stage][warp() - 1][lane()], arch::Vec4{});
      if (!is(Mistake::kReleasedBeforeRead)) release(stage);
    }
    arch::global_store(params_.out + (warp() - 1) * 32 + lane(), sum);
  }
  ASSAY_DEVICE void release(int stage) {
    if (!is(Mistake::kReleasedWithoutWarpBarrier)) arch::warp_barrier();
    if (lane() == 0 || is(Mistake::kReleasedByEachLane))
      arch::mbarrier_arrive(&shared_.empty[stage]);
  }

  const RingParams &params_;
  const Mistake mistake_;
  RingStorage &shared_;
  uint32_t sum_ = 0;
};

} // namespace assay::ASSAY_TARGET::arch_test
