// SPDX-License-Identifier: Apache-2.0
// Two kernels for a cluster of two blocks, and what may be wrong about each: a ring that both
// blocks fill for both, and sums that blocks read from each other.
#pragma once

#include "kernels/arch/cluster.cuh"
#include "kernels/arch/load_store.cuh"
#include "kernels/arch/tests/bulk_ring.h"

namespace assay::ASSAY_TARGET::arch_test {

enum class ClusterMistake {
  kNone,
  // of the ring
  kPeerNotAsked,   // its consumers may still read the slot
  kWaitOfBlock,    // arrivals of the peer are not seen
  kEmptyCountsOwn, // and both blocks arrive
  kInitMetByBlock, // the peer may not have begun
  kInitNotFenced,
  kNoLastBarrier,
  kLastBarrierOfBlock,
  kExpectsOwnBox,
  kOneBlockExpects,
  kCopiedToItself, // and not to the peer
  kCopiedToThird,  // there are two blocks
  kBothCopyBoth,
  kReleasedBeforeRead,
  kPeerReleasedTwice,
  kFullWrongPhase,
  kPeerSlotOverwritten, // by a store, while the peer reads
  kPeerSlotRead,        // when its own phase is complete
  // of the sums
  kSumNotAwaited,
  kSumMetByBlock,
  kSumLeftEarly,   // while the peer reads
  kSumOverwritten, // while the peer reads
  kSumOfThird,
  kSumPastTheEnd,
  kSumStoredTwice, // both blocks store at one place
  kSumEndsAtOnce   // and the peer reads what it had
};
inline constexpr int kClusterMistakes = static_cast<int>(ClusterMistake::kSumEndsAtOnce);
inline constexpr uint32_t kClusterBlocks = 2;

/// Each block copies one of the two boxes of a tile to both blocks.
class ClusterRing {
public:
  static constexpr int kThreads = 128;

  ASSAY_DEVICE ClusterRing(const RingParams &params, ClusterMistake mistake)
      : params_(params), mistake_(mistake), shared_(arch::shared_storage<RingStorage>()) {}

  ASSAY_DEVICE void run() {
    if (arch::thread_idx() == 0) init();
    if (is(ClusterMistake::kInitMetByBlock))
      arch::block_barrier();
    else
      arch::cluster_barrier();
    if (warp() == 0 && lane() == 0) produce();
    if (warp() == 1 || warp() == 2) consume();
    arch::warp_barrier();
    if (is(ClusterMistake::kLastBarrierOfBlock))
      arch::block_barrier();
    else if (!is(ClusterMistake::kNoLastBarrier))
      arch::cluster_barrier();
  }

private:
  ASSAY_DEVICE bool is(ClusterMistake m) const { return mistake_ == m; }
  static ASSAY_DEVICE int warp() { return static_cast<int>(arch::warp_id()); }
  static ASSAY_DEVICE int lane() { return static_cast<int>(arch::lane_id()); }
  static ASSAY_DEVICE uint32_t peer() { return arch::cluster_rank() ^ 1; }

  ASSAY_DEVICE void init() {
    const bool own = is(ClusterMistake::kPeerNotAsked) || is(ClusterMistake::kEmptyCountsOwn);
    for (int s = 0; s < kRingStages; ++s) {
      arch::mbarrier_init(&shared_.full[s], 1);
      arch::mbarrier_init(&shared_.empty[s], own ? 2 : 4);
    }
    if (!is(ClusterMistake::kInitNotFenced)) arch::fence_mbarrier_init();
  }

  ASSAY_DEVICE void copy(uint32_t box, int stage, int tile) {
    const int32_t at[2] = {0, tile * kBoxRows};
    uint16_t blocks = 3;
    if (is(ClusterMistake::kCopiedToItself))
      blocks = static_cast<uint16_t>(1 << arch::cluster_rank());
    if (is(ClusterMistake::kCopiedToThird)) blocks = 7;
    arch::tensor_copy_multicast(shared_.slots[stage][box], params_.maps[box], at,
                                &shared_.full[stage], blocks);
  }

  ASSAY_DEVICE void produce() {
    for (int tile = 0; tile < kTiles; ++tile) {
      const int stage = tile % kRingStages;
      const uint32_t round = static_cast<uint32_t>(tile / kRingStages) & 1;
      if (is(ClusterMistake::kWaitOfBlock) || is(ClusterMistake::kPeerNotAsked))
        arch::mbarrier_wait(&shared_.empty[stage], round ^ 1);
      else
        arch::mbarrier_wait_cluster(&shared_.empty[stage], round ^ 1);
      const uint32_t boxes = is(ClusterMistake::kExpectsOwnBox) ? 1 : 2;
      if (is(ClusterMistake::kOneBlockExpects) && arch::cluster_rank() == 1)
        arch::mbarrier_arrive(&shared_.full[stage]);
      else
        arch::mbarrier_arrive_expect_tx(&shared_.full[stage], boxes * kRingBoxBytes);
      copy(arch::cluster_rank(), stage, tile);
      if (is(ClusterMistake::kBothCopyBoth)) copy(peer(), stage, tile);
    }
  }

  ASSAY_DEVICE void consume() {
    uint32_t sum = 0;
    for (int tile = 0; tile < kTiles; ++tile) {
      const int stage = tile % kRingStages;
      const uint32_t round = static_cast<uint32_t>(tile / kRingStages) & 1;
      arch::mbarrier_wait(&shared_.full[stage],
                          is(ClusterMistake::kFullWrongPhase) ? round ^ 1 : round);
      if (is(ClusterMistake::kReleasedBeforeRead)) release(stage);
      for (auto &box : shared_.slots[stage])
        for (int i = lane(); i < kBoxVectors; i += 32) {
          const arch::Vec4 v = is(ClusterMistake::kPeerSlotRead)
                                   ? arch::cluster_load(&box[i], peer())
                                   : arch::shared_load(&box[i]);
          sum += v.x + v.y + v.z + v.w;
        }
      if (is(ClusterMistake::kPeerSlotOverwritten))
        arch::cluster_store(&shared_.slots[stage][0][lane()], arch::Vec4{}, peer());
      if (!is(ClusterMistake::kReleasedBeforeRead)) release(stage);
    }
    const uint32_t to = arch::block_idx_x() * 64 + static_cast<uint32_t>(warp() - 1) * 32;
    arch::global_store(params_.out + to + lane(), sum);
  }
  ASSAY_DEVICE void release(int stage) {
    arch::warp_barrier();
    if (lane() != 0) return;
    arch::mbarrier_arrive(&shared_.empty[stage]);
    if (!is(ClusterMistake::kPeerNotAsked))
      arch::mbarrier_arrive_cluster(&shared_.empty[stage], peer());
    if (is(ClusterMistake::kPeerReleasedTwice))
      arch::mbarrier_arrive_cluster(&shared_.empty[stage], peer());
  }

  const RingParams &params_;
  const ClusterMistake mistake_;
  RingStorage &shared_;
};

/// Each block adds up the numbers of both.
class ClusterSum {
public:
  static constexpr int kThreads = 128;
  struct Storage {
    uint32_t numbers[kThreads], received[kThreads];
  };

  static ASSAY_DEVICE void run(uint32_t *out, ClusterMistake mistake) {
    Storage &shared = arch::shared_storage<Storage>();
    const uint32_t thread = arch::thread_idx(), rank = arch::cluster_rank();
    const auto is = [&](ClusterMistake m) { return mistake == m; };
    arch::shared_store(&shared.numbers[thread], 1000 * rank + thread);
    if (is(ClusterMistake::kSumEndsAtOnce) && rank == 1) return;
    if (is(ClusterMistake::kSumMetByBlock))
      arch::block_barrier();
    else if (!is(ClusterMistake::kSumNotAwaited))
      arch::cluster_barrier();
    const uint32_t from = is(ClusterMistake::kSumOfThird) ? 2 : rank ^ 1;
    const uint32_t *place = &shared.numbers[kThreads - 1 - thread];
    if (is(ClusterMistake::kSumPastTheEnd)) place += sizeof(Storage) / 4;
    const uint32_t other = arch::cluster_load(place, from);
    arch::cluster_store(&shared.received[is(ClusterMistake::kSumStoredTwice) ? 0 : thread], other,
                        rank ^ 1);
    if (is(ClusterMistake::kSumStoredTwice)) arch::shared_store(&shared.received[0], other);
    if (is(ClusterMistake::kSumOverwritten)) arch::shared_store(&shared.numbers[thread], 0u);
    if (!is(ClusterMistake::kSumLeftEarly)) arch::cluster_barrier();
    const uint32_t mine =
        other +
        (is(ClusterMistake::kSumLeftEarly) ? 0 : arch::shared_load(&shared.received[thread]));
    arch::global_store(out + arch::block_idx_x() * kThreads + thread, mine);
  }
};

} // namespace assay::ASSAY_TARGET::arch_test
