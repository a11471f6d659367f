// SPDX-License-Identifier: Apache-2.0
// Wrong uses of clusters. Each is stopped on the first schedule, by a report with the lines of both
// parties.
#include <gtest/gtest.h>

#include <optional>
#include <vector>

#include "kernels/arch/tests/cluster_ring.h"
#include "kernels/arch/tests/schedules.h"

namespace assay::n_simt::arch_test {
namespace {

using simt::HazardKind;

class ClusterRun {
public:
  ClusterRun() {
    for (int box = 0; box < 2; ++box) {
      void *data = stream_.memory.allocate(kTensorRows * 128, simt::Access::kReadOnly,
                                           simt::InitState::kDefined, "tensor");
      EXPECT_STREQ(arch::make_tensor_map(params_.maps[box], ring_shape(data)), nullptr);
    }
    params_.out = static_cast<uint32_t *>(stream_.memory.allocate(
        256 * 4, simt::Access::kReadWrite, simt::InitState::kDefined, "out"));
  }

  /// What was reported, if anything was.
  std::optional<simt::Hazard> run(ClusterMistake mistake, const simt::Schedule &schedule,
                                  bool sum) {
    stream_.schedule = schedule;
    stream_.hazards.clear();
    simt::LaunchConfig config;
    config.grid_x = config.cluster = kClusterBlocks;
    config.block = 128;
    config.shared_bytes = sum ? sizeof(ClusterSum::Storage) : sizeof(RingStorage);
    simt::launch(&stream_, config, [&] {
      if (sum)
        ClusterSum::run(params_.out, mistake);
      else
        ClusterRing(params_, mistake).run();
    });
    if (stream_.hazards.empty()) return {};
    return stream_.hazards[0];
  }
  std::optional<simt::Hazard> run(ClusterMistake mistake, const simt::Schedule &schedule) {
    return run(mistake, schedule, mistake >= ClusterMistake::kSumNotAwaited);
  }

private:
  simt::Stream stream_;
  RingParams params_ = {};
};

TEST(Cluster, right_on_every_schedule) {
  each_schedule([&](const simt::Schedule &schedule) {
    for (const bool sum : {false, true}) {
      const auto hazard = ClusterRun().run(ClusterMistake::kNone, schedule, sum);
      EXPECT_FALSE(hazard) << hazard->message;
    }
  });
}

struct WrongOne {
  ClusterMistake mistake;
  HazardKind kind;    // of the report on the first schedule
  bool alone = false; // there is no second party, or it has not begun
};

constexpr WrongOne kWrongOnes[] = {
    {ClusterMistake::kPeerNotAsked, HazardKind::kAsyncInFlightWrite},
    {ClusterMistake::kWaitOfBlock, HazardKind::kBarrierMisuse},
    {ClusterMistake::kEmptyCountsOwn, HazardKind::kAsyncInFlightWrite},
    {ClusterMistake::kInitMetByBlock, HazardKind::kBarrierMisuse, true},
    {ClusterMistake::kInitNotFenced, HazardKind::kMissingFence},
    {ClusterMistake::kNoLastBarrier, HazardKind::kUnordered},
    {ClusterMistake::kLastBarrierOfBlock, HazardKind::kUnordered},
    {ClusterMistake::kExpectsOwnBox, HazardKind::kBarrierMisuse},
    {ClusterMistake::kOneBlockExpects, HazardKind::kBarrierMisuse},
    {ClusterMistake::kCopiedToItself, HazardKind::kDeadlock},
    {ClusterMistake::kCopiedToThird, HazardKind::kUnmodelled, true},
    {ClusterMistake::kBothCopyBoth, HazardKind::kAsyncInFlightWrite},
    {ClusterMistake::kReleasedBeforeRead, HazardKind::kUnordered},
    {ClusterMistake::kPeerReleasedTwice, HazardKind::kBarrierMisuse},
    {ClusterMistake::kFullWrongPhase, HazardKind::kAsyncInFlightRead},
    {ClusterMistake::kPeerSlotOverwritten, HazardKind::kAsyncInFlightWrite},
    {ClusterMistake::kPeerSlotRead, HazardKind::kAsyncInFlightRead},
    {ClusterMistake::kSumNotAwaited, HazardKind::kUnordered, true},
    {ClusterMistake::kSumMetByBlock, HazardKind::kUnordered, true},
    {ClusterMistake::kSumLeftEarly, HazardKind::kUnordered},
    {ClusterMistake::kSumOverwritten, HazardKind::kUnordered},
    {ClusterMistake::kSumOfThird, HazardKind::kUnmodelled, true},
    {ClusterMistake::kSumPastTheEnd, HazardKind::kSharedOutOfBounds, true},
    {ClusterMistake::kSumStoredTwice, HazardKind::kUnordered},
    {ClusterMistake::kSumEndsAtOnce, HazardKind::kUnordered},
};
static_assert(std::size(kWrongOnes) == kClusterMistakes);

class WrongCluster : public testing::TestWithParam<WrongOne> {};

TEST_P(WrongCluster, is_reported_on_the_first_schedule) {
  const WrongOne &wrong = GetParam();
  const auto hazard = ClusterRun().run(wrong.mistake, {});
  ASSERT_TRUE(hazard);
  EXPECT_EQ(hazard->kind, wrong.kind) << hazard->message;
  EXPECT_EQ(hazard->other.file == nullptr, wrong.alone) << hazard->message;
}

TEST_P(WrongCluster, is_reported_on_every_schedule) {
  each_schedule([&](const simt::Schedule &schedule) {
    EXPECT_TRUE(ClusterRun().run(GetParam().mistake, schedule))
        << static_cast<int>(schedule.order) << static_cast<int>(schedule.copies) << " "
        << schedule.seed;
  });
}

INSTANTIATE_TEST_SUITE_P(all, WrongCluster, testing::ValuesIn(kWrongOnes));

TEST(Cluster, impossible_ones_are_refused) {
  simt::Stream stream;
  const auto refuses = [&](uint32_t grid_x, uint32_t block, uint32_t cluster) {
    simt::LaunchConfig config;
    config.grid_x = grid_x;
    config.block = block;
    config.cluster = cluster;
    EXPECT_EQ(simt::launch(&stream, config, [] {}), simt::LaunchStatus::kHazard);
    EXPECT_EQ(stream.hazards.back().kind, HazardKind::kUnmodelled);
  };
  refuses(16, 128, 0);
  refuses(16, 128, 16);
  refuses(3, 128, 2);
  refuses(2, 96, 2);
  refuses(4, 512, 4);
}

} // namespace
} // namespace assay::n_simt::arch_test
