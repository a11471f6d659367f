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
    config.early_start = true;
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
  const auto body = [&] {
    load(Space::kGlobal, words + me() % 8);
    wait();
    start_next_grid(Site::here());
    store(Space::kGlobal, words, load(Space::kGlobal, words + 8));
  };
  expect_clean(early(64), body);
}

// Any other launch begins when the grid in front has finished: nothing is late, nothing to wait
// for.
TEST_F(EarlyStart, other_launches_may_do_all_that) {
  expect_clean(block_of(64), [&] {
    start_next_grid(Site::here());
    store(Space::kGlobal, words, load(Space::kGlobal, words + 8));
  });
}

} // namespace
} // namespace assay::simt
