// SPDX-License-Identifier: Apache-2.0
// Every wrong use of barriers and collectives, with the message that names the line.
#include "kernels/simt/tests/fixture.h"

namespace assay::simt {
namespace {

using SyncHazard = HazardTest;

TEST_F(SyncHazard, exited_thread_and_barrier) {
  uint32_t line = 0;
  const Hazard hazard = [&] {
    line = __LINE__ + 3;
    return expect(HazardKind::kDivergentBarrier, __FILE__, line, block_of(64), [] {
      if (me() == 5) return;
      sync_block();
    });
  }();
  expect_text(hazard, "thread 5 exited");
  EXPECT_EQ(hazard.thread, 5u);
}

TEST_F(SyncHazard, barrier_after_exits) {
  // The highest thread first: the others have all left when thread 0 arrives.
  stream.schedule.order = Order::kDescending;
  const uint32_t line = __LINE__ + 2;
  const Hazard hazard = expect(HazardKind::kDivergentBarrier, __FILE__, line, block_of(40), [] {
    if (me() == 0) sync_block();
  });
  expect_text(hazard, "39 of 40 threads have exited");
  expect_text(hazard, "threads 1-39: exited");
}

TEST_F(SyncHazard, barriers_on_two_lines) {
  const uint32_t line = __LINE__ + 3;
  const Hazard hazard = expect(HazardKind::kDivergentBarrier, __FILE__, line + 2, block_of(32), [] {
    if (me() < 16)
      sync_block();
    else
      sync_block();
  });
  EXPECT_EQ(hazard.other.line, line);
  expect_text(hazard, "sync_hazard_test.cpp:" + std::to_string(line));
  expect_text(hazard, "threads 0-15: wait at block_barrier");
}

TEST_F(SyncHazard, deadlock_lists_who_waits_where) {
  const uint32_t line = __LINE__ + 3;
  const Hazard hazard = expect(HazardKind::kDeadlock, __FILE__, line, block_of(96), [] {
    if (me() < 32)
      sync_named(1, 64);
    else
      sync_block();
  });
  expect_text(hazard, "threads 0-31: wait at named_barrier 1 (32 of 64 threads there)");
  expect_text(hazard, "threads 32-95: wait at block_barrier");
  EXPECT_EQ(hazard.other.line, line + 2);
}

TEST_F(SyncHazard, groups_that_take_turns_at_one_named_barrier) {
  const uint32_t line = __LINE__ + 1;
  const Hazard hazard = expect(HazardKind::kDivergentBarrier, __FILE__, line + 1, block_of(128),
                               [] { sync_named(1, 64); });
  expect_text(hazard, "on another schedule they mix");
  // Clean: one barrier each, or the block between.
  expect_clean(block_of(128), [] { sync_named(1 + me() / 64, 64); });
  expect_clean(block_of(128), [] {
    if (me() < 64) sync_named(1, 64);
    sync_block();
    if (me() >= 64) sync_named(1, 64);
  });
}

TEST_F(SyncHazard, named_barrier_misuse) {
  uint32_t line = __LINE__ + 1;
  Hazard hazard = expect(HazardKind::kDivergentBarrier, __FILE__, line + 4, block_of(96), [] {
    if (me() < 32)
      sync_named(1, 64);
    else
      sync_named(1, 96);
  });
  EXPECT_EQ(hazard.other.line, line + 2);
  line = __LINE__ + 1;
  hazard = expect(HazardKind::kDivergentBarrier, __FILE__, line + 1, block_of(64), [] {
    if (me() % 2 == 0) sync_named(1, 32);
  });
  expect_text(hazard, "whole warps");
  line = __LINE__ + 1;
  expect(HazardKind::kUnmodelled, __FILE__, line, block_of(32), [] { sync_named(0, 32); });
  line = __LINE__ + 1;
  expect(HazardKind::kUnmodelled, __FILE__, line, block_of(32), [] { sync_named(16, 32); });
  line = __LINE__ + 1;
  expect(HazardKind::kUnmodelled, __FILE__, line, block_of(32), [] { sync_named(1, 33); });
  line = __LINE__ + 1;
  expect(HazardKind::kUnmodelled, __FILE__, line, block_of(32), [] { sync_named(1, 64); });
}

TEST_F(SyncHazard, collective_with_an_exited_lane) {
  const uint32_t line = __LINE__ + 3;
  Hazard hazard = expect(HazardKind::kAbsentLane, __FILE__, line, block_of(32), [] {
    if (lane() == 31) return;
    warp_barrier(0xffffffffu);
  });
  expect_text(hazard, "lane 31 exited");
  stream.schedule.order = Order::kDescending;
  hazard = expect(HazardKind::kAbsentLane, __FILE__, __LINE__ + 2, block_of(32), [] {
    if (lane() == 31) return;
    warp_barrier(0xffffffffu);
  });
  expect_text(hazard, "names lanes 0x80000000 that have exited");
}

TEST_F(SyncHazard, collective_past_the_end_of_the_block) {
  const Hazard hazard = expect(HazardKind::kAbsentLane, __FILE__, __LINE__ + 1, block_of(48),
                               [] { warp_barrier(0xffffffffu); });
  EXPECT_EQ(hazard.thread, 32u);
  expect_text(hazard, "0xffff0000");
}

TEST_F(SyncHazard, lanes_at_different_collectives) {
  const uint32_t line = __LINE__ + 3;
  const Hazard hazard = expect(HazardKind::kAbsentLane, __FILE__, line + 2, block_of(32), [] {
    if (lane() < 8)
      warp_barrier(0xffffffffu);
    else
      warp_barrier(0xffffffffu);
  });
  EXPECT_EQ(hazard.other.line, line);
  EXPECT_EQ(hazard.thread, 8u);
  expect_text(hazard, "meets lanes 0x000000ff waiting at warp_barrier");
}

TEST_F(SyncHazard, masks_that_disagree) {
  const Hazard hazard = expect(HazardKind::kAbsentLane, __FILE__, __LINE__ + 1, block_of(32),
                               [] { warp_barrier(lane() == 3 ? 0x0000ffffu : 0xffffffffu); });
  expect_text(hazard, "0x0000ffff");
  expect_text(hazard, "0xffffffff");
}

TEST_F(SyncHazard, caller_outside_its_mask) {
  const Hazard hazard = expect(HazardKind::kAbsentLane, __FILE__, __LINE__ + 1, block_of(32),
                               [] { warp_barrier(0xfffffffeu); });
  EXPECT_EQ(hazard.thread, 0u);
  expect_text(hazard, "which the mask does not name");
}

TEST_F(SyncHazard, lane_waits_at_a_block_barrier) {
  const uint32_t line = __LINE__ + 3;
  const Hazard hazard = expect(HazardKind::kAbsentLane, __FILE__, line, block_of(64), [] {
    if (me() < 20)
      warp_barrier(0xffffffffu);
    else
      sync_block();
  });
  expect_text(hazard, "waits for lanes 0xfff00000, which are elsewhere");
  expect_text(hazard, "threads 20-63: wait at block_barrier");
  EXPECT_EQ(hazard.other.line, line + 2);
}

TEST_F(SyncHazard, overlapping_masks_in_turn_are_legal) {
  expect_clean(block_of(32), [] {
    if (lane() < 8) warp_barrier(0x000000ffu);
    warp_barrier(0xffffffffu);
  });
}

TEST_F(SyncHazard, barriers_used_well_are_legal) {
  expect_clean(block_of(128), [] {
    for (int i = 0; i < 10; ++i) {
      sync_block();
      if (me() < 64) sync_named(3, 64);
      warp_barrier(0xffffffffu);
    }
  });
}

TEST_F(SyncHazard, exception_leaves_the_kernel) {
  EXPECT_EQ(launch(&stream, block_of(4), [] { throw std::runtime_error("boom"); }),
            LaunchStatus::kHazard);
  EXPECT_EQ(stream.hazards.back().kind, HazardKind::kUnmodelled);
  expect_text(stream.hazards.back(), "boom");
}

TEST_F(SyncHazard, impossible_launches) {
  for (const LaunchConfig &config :
       {block_of(0), block_of(1025), block_of(1, kMaxSharedBytes + 1), block_of(1, 0, 0)}) {
    EXPECT_EQ(launch(&stream, config, [] { FAIL(); }), LaunchStatus::kHazard);
    EXPECT_EQ(stream.hazards.back().kind, HazardKind::kUnmodelled);
  }
}

TEST_F(SyncHazard, null_stream_gives_the_status) {
  EXPECT_EQ(launch(nullptr, block_of(64), [] { sync_block(); }), LaunchStatus::kOk);
  EXPECT_EQ(launch(nullptr, block_of(64),
                   [] {
                     if (me() != 0) sync_block();
                   }),
            LaunchStatus::kHazard);
}

TEST(Device, outside_a_launch_throws) {
  EXPECT_THROW(sync_block(), std::logic_error);
  Stream stream;
  bool threw = false;
  launch(&stream, block_of(1), [&] {
    try {
      launch(&stream, block_of(1), [] {});
    } catch (const std::logic_error &) {
      threw = true;
    }
  });
  EXPECT_TRUE(threw);
}

} // namespace
} // namespace assay::simt
