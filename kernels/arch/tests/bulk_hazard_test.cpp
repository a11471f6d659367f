// SPDX-License-Identifier: Apache-2.0
// Wrong uses of bulk copies and of the bytes that an mbarrier expects. Each is stopped on the first
// schedule, by a report with the lines of both parties.
#include <gtest/gtest.h>

#include <numeric>
#include <optional>
#include <vector>

#include "kernels/arch/tests/bulk_ring.h"
#include "kernels/arch/tests/schedules.h"
#include "kernels/arch/wgmma.cuh"
#include "kernels/simt/explorer.h"

namespace assay::n_simt::arch_test {
namespace {

using simt::HazardKind;

class BulkRing {
public:
  BulkRing() {
    for (int box = 0; box < 2; ++box) {
      auto *words = static_cast<uint32_t *>(
          stream_.memory.allocate(kTensorRows * 128, simt::Access::kReadWrite,
                                  simt::InitState::kDefined, box == 0 ? "k" : "v"));
      for (int i = 0; i < kTensorRows * 32; ++i)
        total_ += words[i] = static_cast<uint32_t>(i * 2654435761u + box);
      params_.data[box] = reinterpret_cast<arch::Vec4 *>(words);
      EXPECT_STREQ(arch::make_tensor_map(params_.maps[box], ring_shape(words)), nullptr);
    }
    params_.out = static_cast<uint32_t *>(stream_.memory.allocate(
        64 * 4, simt::Access::kReadWrite, simt::InitState::kDefined, "out"));
  }

  /// What was reported, if anything was.
  std::optional<simt::Hazard> run(Mistake mistake, const simt::Schedule &schedule) {
    stream_.schedule = schedule;
    stream_.hazards.clear();
    simt::LaunchConfig config;
    config.block = Ring::kThreads;
    config.shared_bytes = sizeof(RingStorage);
    simt::launch(&stream_, config, [&] { Ring(params_, mistake).run(); });
    if (stream_.hazards.empty()) return {};
    return stream_.hazards[0];
  }
  /// Runs on every schedule that differs, until something is wrong.
  simt::Explored explore(Mistake mistake) {
    return simt::explore(stream_, 1000, [&] { return !run(mistake, {}) && right(); });
  }
  /// Whether both consumers have the sum of both tensors.
  bool right() const {
    return std::accumulate(params_.out, params_.out + 32, 0u) == total_ &&
           std::accumulate(params_.out + 32, params_.out + 64, 0u) == total_;
  }

private:
  simt::Stream stream_;
  RingParams params_ = {};
  uint32_t total_ = 0;
};

TEST(BulkRing, right_on_every_schedule) {
  each_schedule([&](const simt::Schedule &schedule) {
    BulkRing ring;
    const auto hazard = ring.run(Mistake::kNone, schedule);
    EXPECT_FALSE(hazard) << hazard->message;
    EXPECT_TRUE(ring.right());
  });
}

TEST(BulkRing, right_on_every_schedule_that_there_is) {
  const simt::Explored explored = BulkRing().explore(Mistake::kNone);
  EXPECT_TRUE(explored.complete) << explored.text();
}

struct Wrong {
  Mistake mistake;
  HazardKind kind;    // of the report on the first schedule
  bool alone = false; // there is no second party
};

constexpr Wrong kWrong[] = {
    {Mistake::kFullNotAwaited, HazardKind::kUnordered},
    {Mistake::kFullWrongPhase, HazardKind::kUnordered},
    {Mistake::kEmptyNotAwaited, HazardKind::kBarrierMisuse},
    {Mistake::kEmptyWrongPhase, HazardKind::kDeadlock},
    {Mistake::kEmptyOneConsumer, HazardKind::kAsyncInFlightRead},
    {Mistake::kReleasedBeforeRead, HazardKind::kUnordered},
    {Mistake::kReleasedByEachLane, HazardKind::kAsyncInFlightRead},
    {Mistake::kReleasedWithoutWarpBarrier, HazardKind::kUnordered},
    {Mistake::kOtherStageSignalled, HazardKind::kUnordered},
    {Mistake::kOtherStageFilled, HazardKind::kAsyncInFlightRead},
    {Mistake::kExtraArrival, HazardKind::kBarrierMisuse},
    {Mistake::kExpectsOneBox, HazardKind::kBarrierMisuse},
    {Mistake::kExpectsHalfOfEach, HazardKind::kBarrierMisuse},
    {Mistake::kExpectsTwice, HazardKind::kDeadlock},
    {Mistake::kExpectsValidRowsOnly, HazardKind::kBarrierMisuse},
    {Mistake::kExpectsWiderElements, HazardKind::kDeadlock},
    {Mistake::kNothingExpected, HazardKind::kUnordered},
    {Mistake::kArrivesBeforeExpect, HazardKind::kUnordered},
    {Mistake::kExpectsFirstTileOnly, HazardKind::kAsyncInFlightRead},
    {Mistake::kInitNotFenced, HazardKind::kMissingFence},
    {Mistake::kInitWithoutBarrier, HazardKind::kUnordered},
    {Mistake::kInitBehindBarrier, HazardKind::kBarrierMisuse, true},
    {Mistake::kZeroesNotFenced, HazardKind::kMissingFence},
    {Mistake::kZeroesNotAwaited, HazardKind::kUnordered},
    {Mistake::kSourceWrittenHere, HazardKind::kMissingFence},
    {Mistake::kCopiedByEachLane, HazardKind::kAsyncInFlightWrite},
    {Mistake::kCopiedTwice, HazardKind::kAsyncInFlightWrite},
    {Mistake::kSlotMisaligned, HazardKind::kMisaligned, true},
    {Mistake::kSwizzledAt128, HazardKind::kMisaligned, true},
    {Mistake::kMapNotMade, HazardKind::kUnmodelled, true},
    {Mistake::kTailPastTheEnd, HazardKind::kGlobalOutOfBounds, true},
    {Mistake::kSizeNotOf16, HazardKind::kMisaligned, true},
    {Mistake::kScratchInSlot, HazardKind::kUnordered},
    {Mistake::kLastNotAwaited, HazardKind::kAsyncInFlightRead},
    {Mistake::kProducerReads, HazardKind::kAsyncInFlightRead},
    {Mistake::kSourceOverwritten, HazardKind::kAsyncInFlightWrite},
};
static_assert(std::size(kWrong) == kMistakes - 1); // all but kTailCopiedByHand

class WrongRing : public testing::TestWithParam<Wrong> {};

TEST_P(WrongRing, is_reported_on_the_first_schedule) {
  const Wrong &wrong = GetParam();
  const auto hazard = BulkRing().run(wrong.mistake, {});
  ASSERT_TRUE(hazard);
  EXPECT_EQ(hazard->kind, wrong.kind) << hazard->message;
  EXPECT_EQ(hazard->other.file == nullptr, wrong.alone) << hazard->message;
}

TEST_P(WrongRing, is_reported_on_every_schedule) {
  each_schedule([&](const simt::Schedule &schedule) {
    EXPECT_TRUE(BulkRing().run(GetParam().mistake, schedule))
        << static_cast<int>(schedule.order) << static_cast<int>(schedule.copies) << " "
        << schedule.seed;
  });
}

TEST_P(WrongRing, is_found_by_the_explorer) {
  EXPECT_TRUE(BulkRing().explore(GetParam().mistake).stopped);
}

INSTANTIATE_TEST_SUITE_P(all, WrongRing, testing::ValuesIn(kWrong));

// ---- slots that matrix operations read ----

enum class MatrixMistake {
  kNone,
  kNotAwaited,
  kReleasedInFlight,
  kStoredUnfenced,
  kBoxBetweenChunks
};

/// A warpgroup multiplies what a copy brings, twice through the same slot.
void multiply(const arch::TensorMap &map, MatrixMistake mistake) {
  struct Storage {
    alignas(1024) arch::Vec4 slot[512];
    arch::Mbarrier full, empty;
  };
  Storage &shared = arch::shared_storage<Storage>();
  if (arch::thread_idx() == 0) {
    arch::mbarrier_init(&shared.full, 1);
    arch::mbarrier_init(&shared.empty, 128);
    arch::fence_mbarrier_init();
  }
  arch::block_barrier();
  for (uint32_t round = 0; round < 2; ++round) {
    if (arch::thread_idx() == 128) {
      arch::mbarrier_wait(&shared.empty, round ^ 1);
      arch::mbarrier_arrive_expect_tx(&shared.full, sizeof shared.slot);
      const int32_t at[2] = {mistake == MatrixMistake::kBoxBetweenChunks ? 4 : 0, 0};
      arch::tensor_copy(shared.slot, map, at, &shared.full);
    }
    if (arch::thread_idx() >= 128) continue;
    if (mistake != MatrixMistake::kNotAwaited) arch::mbarrier_wait(&shared.full, round);
    if (mistake == MatrixMistake::kStoredUnfenced) {
      arch::shared_store(&shared.slot[arch::thread_idx()], arch::Vec4{});
      arch::named_barrier(1, 128);
    }
    float c[32] = {};
    arch::wgmma_fence(c);
    arch::wgmma_m64k16<arch::bf16>(c, arch::KMajorMatrix(shared.slot),
                                   arch::KMajorMatrix(shared.slot), false);
    arch::wgmma_commit();
    if (mistake == MatrixMistake::kReleasedInFlight) arch::mbarrier_arrive(&shared.empty);
    arch::wgmma_wait<0>(c);
    if (mistake != MatrixMistake::kReleasedInFlight) arch::mbarrier_arrive(&shared.empty);
  }
}

TEST(BulkMatrix, needs_the_phase_and_no_fence) {
  const auto seen = [](MatrixMistake mistake, const simt::Schedule &schedule) {
    simt::Stream stream;
    arch::TensorShape shape;
    shape.data =
        stream.memory.allocate(8192, simt::Access::kReadOnly, simt::InitState::kDefined, "keys");
    shape.rank = 2;
    shape.size[0] = shape.size[1] = shape.box[0] = shape.box[1] = 64;
    shape.stride[1] = 128;
    shape.swizzle = arch::Swizzle::k128Bytes;
    arch::TensorMap map;
    EXPECT_STREQ(arch::make_tensor_map(map, shape), nullptr);
    stream.schedule = schedule;
    simt::LaunchConfig config;
    config.block = 160;
    config.shared_bytes = 9 * 1024;
    simt::launch(&stream, config, [&] { multiply(map, mistake); });
    return stream.hazards.empty() ? std::optional<HazardKind>() : stream.hazards[0].kind;
  };
  each_schedule([&](const simt::Schedule &schedule) {
    EXPECT_EQ(seen(MatrixMistake::kNone, schedule), std::nullopt);
    for (const MatrixMistake mistake :
         {MatrixMistake::kNotAwaited, MatrixMistake::kReleasedInFlight,
          MatrixMistake::kStoredUnfenced, MatrixMistake::kBoxBetweenChunks})
      EXPECT_TRUE(seen(mistake, schedule)) << static_cast<int>(mistake);
  });
  EXPECT_EQ(seen(MatrixMistake::kReleasedInFlight, {}), HazardKind::kAsyncInFlightWrite);
  EXPECT_EQ(seen(MatrixMistake::kStoredUnfenced, {}), HazardKind::kMissingFence);
  EXPECT_EQ(seen(MatrixMistake::kBoxBetweenChunks, {}), HazardKind::kMisaligned);
}

/// The rows behind the end keep what the slot had from an earlier tile. That is a value like any
/// other: the result is wrong, and nothing is reported.
TEST(BulkRing, a_tail_without_zeros_is_seen_in_the_result_alone) {
  BulkRing ring;
  EXPECT_FALSE(ring.run(Mistake::kTailCopiedByHand, {}));
  EXPECT_FALSE(ring.right());
}

} // namespace
} // namespace assay::n_simt::arch_test
