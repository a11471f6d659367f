// SPDX-License-Identifier: Apache-2.0
// Every wrong order with the grid in front of a launch that starts early.
#include "kernels/simt/tests/fixture.h"

namespace assay::simt {
namespace {

void wait(Site site = Site::here()) { wait_for_previous_grid(site); }

class EarlyStart : public HazardTest {
protected:
  EarlyStart() {
    words = static_cast<uint32_t *>(
        stream.memory.allocate(64, Access::kReadWrite, InitState::kDefined, "words"));
    stream.memory.mark_late(words + 8, 4);
  }
  static LaunchConfig early(uint32_t threads) {
    LaunchConfig config = block_of(threads);
    config.enable_pdl = true;
    return config;
  }
  uint32_t *words = nullptr;
};

TEST_F(EarlyStart, reads_what_is_being_written) {
  const uint32_t line = __LINE__ + 2;
  const Hazard hazard = expect(HazardKind::kTooEarly, __FILE__, line, early(32), [&] {
    load(Space::kGlobal, words + me() % 16);
    wait();
  });
  expect_text(hazard, "4 bytes at offset 32 of buffer 'words', which the kernel in front may be "
                      "writing, are read before wait_for_previous_grid");
  EXPECT_EQ(hazard.thread, 8u);
}

TEST_F(EarlyStart, writes) {
  const uint32_t line = __LINE__ + 2;
  const Hazard hazard = expect(HazardKind::kTooEarly, __FILE__, line, early(1), [&] {
    store(Space::kGlobal, words, 1);
    wait();
  });
  expect_text(hazard, "are written before wait_for_previous_grid");
}

// The wait of one thread holds nothing back for another.
TEST_F(EarlyStart, each_thread_waits_for_itself) {
  const uint32_t line = __LINE__ + 4;
  const Hazard hazard = expect(HazardKind::kTooEarly, __FILE__, line, early(64), [&] {
    if (me() != 40) wait();
    sync_block();
    load(Space::kGlobal, words + 8);
    wait();
  });
  EXPECT_EQ(hazard.thread, 40u);
}

TEST_F(EarlyStart, exits_without_a_wait) {
  stream.hazards.clear();
  EXPECT_EQ(launch(&stream, early(32),
                   [] {
                     if (me() != 3) wait();
                   }),
            LaunchStatus::kHazard);
  EXPECT_EQ(stream.hazards.back().kind, HazardKind::kTooEarly);
  expect_text(stream.hazards.back(), "a thread exits without wait_for_previous_grid");
}

TEST_F(EarlyStart, starts_the_next_grid_first) {
  const uint32_t line = __LINE__ + 2;
  expect(HazardKind::kTooEarly, __FILE__, line, early(1), [] {
    start_next_grid(Site::here());
    wait();
  });
}

TEST_F(EarlyStart, in_order_is_clean) {
  const auto body = [&] { // again and again: what it reads first it does not write
    load(Space::kGlobal, words + 1 + me() % 7);
    wait();
    start_next_grid(Site::here());
    if (me() == 0) store(Space::kGlobal, words, load(Space::kGlobal, words + 8));
  };
  expect_clean(early(64), body);
}

// Any other launch begins when the grid in front has finished: nothing is late, nothing to wait
// for.
TEST_F(EarlyStart, other_launches_may_do_all_that) {
  expect_clean(block_of(64), [&] {
    start_next_grid(Site::here());
    if (me() == 0) store(Space::kGlobal, words, load(Space::kGlobal, words + 8));
  });
}

// What the launch in front wrote is late, to the byte; what those before it wrote is not.
TEST_F(EarlyStart, reads_what_the_launch_in_front_wrote) {
  const auto write = [&](int word) {
    EXPECT_EQ(launch(&stream, block_of(1), [&] { store(Space::kGlobal, words + word, 1); }),
              LaunchStatus::kOk);
  };
  const auto read = [&](int word) {
    return launch(&stream, early(1), [&] {
      load(Space::kGlobal, words + word);
      wait();
      load(Space::kGlobal, words + 1);
    });
  };
  write(0);
  write(1);
  EXPECT_EQ(read(0), LaunchStatus::kOk);
  write(1);
  EXPECT_EQ(read(1), LaunchStatus::kHazard);
  expect_text(stream.hazards.back(),
              "4 bytes at offset 4 of buffer 'words', which the kernel in front has written, are "
              "read before wait_for_previous_grid");
  write(1);
  stream.memory.begin_launch();
  EXPECT_EQ(read(1), LaunchStatus::kOk);
}

// To the next launch.
TEST_F(EarlyStart, everything_may_be_late) {
  const auto read = [&] {
    load(Space::kGlobal, words);
    wait();
  };
  stream.memory.mark_all_late();
  EXPECT_EQ(launch(&stream, early(1), read), LaunchStatus::kHazard);
  EXPECT_EQ(launch(&stream, early(1), read), LaunchStatus::kOk);
  stream.memory.mark_all_late();
  EXPECT_EQ(launch(&stream, block_of(1), read), LaunchStatus::kOk);
  EXPECT_EQ(launch(&stream, early(1), read), LaunchStatus::kOk);
}

// The launch behind it begins when all threads of the one in between have waited.
TEST_F(EarlyStart, late_bytes_are_old_to_the_launch_after_the_next) {
  const auto read = [&] {
    load(Space::kGlobal, words + 8);
    wait();
  };
  stream.memory.mark_late(words + 8, 4);
  EXPECT_EQ(launch(&stream, early(1), [] { wait(); }), LaunchStatus::kOk);
  EXPECT_EQ(launch(&stream, early(1), read), LaunchStatus::kOk);
}

} // namespace
} // namespace assay::simt
