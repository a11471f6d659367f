// SPDX-License-Identifier: Apache-2.0
// Order of memory between blocks: every way to do without it, each beside a twin that has it.
#include "kernels/simt/tests/block_order_fixture.h"

namespace assay::simt {
namespace {

using enum AtomicOrder;

constexpr uint32_t kBlocks = 3;

// ---- nothing at all ----

TEST_F(BlockOrderTest, read_of_another_blocks_write) {
  const uint32_t line = __LINE__ + 3;
  stream.hazards.clear();
  const auto body = [&] {
    if (block() == 0) store(Space::kGlobal, words + me(), 1);
    if (block() == 1 && me() == 3) load(Space::kGlobal, words + 2);
  };
  EXPECT_EQ(launch(&stream, block_of(32, 0, 2), body), LaunchStatus::kHazard);
  ASSERT_EQ(stream.hazards.size(), 1u);
  const Hazard &hazard = stream.hazards[0];
  EXPECT_EQ(hazard.site.line, line + 1);
  EXPECT_EQ(hazard.other.line, line);
  EXPECT_EQ(hazard.block, 1u);
  EXPECT_EQ(hazard.thread, 3u);
  expect_text(hazard, "unordered-access: 4 bytes at offset 8 of buffer 'words' are read, and "
                      "nothing orders that behind block 0, thread 2, by which they were written "
                      "at kernels/simt/tests/block_order_test.cpp:" +
                          std::to_string(line));
}

TEST_F(BlockOrderTest, blocks_that_write_the_same_word) {
  const auto seen =
      expect_unordered(block_of(32, 0, 2), [&] { store(Space::kGlobal, words + me(), 1); });
  EXPECT_EQ(seen.line, __LINE__ - 1u);
  EXPECT_EQ(seen.other, seen.line);
  expect_ordered(block_of(32, 0, 2),
                 [&] { store(Space::kGlobal, words + 32 * block() + me(), 1); });
}

TEST_F(BlockOrderTest, parts_of_a_word_belong_to_their_writers) {
  auto *bytes = reinterpret_cast<unsigned char *>(words);
  const auto write = [&] {
    access(Space::kGlobal, AccessKind::kWrite, bytes + block(), 1, 1, Site::here());
  };
  expect_ordered(block_of(1, 0, 16), write);
  const auto seen = expect_unordered(block_of(1, 0, 16), [&] {
    write();
    if (block() == 15) access(Space::kGlobal, AccessKind::kRead, bytes, 16, 16, Site::here());
  });
  EXPECT_NE(seen.text.find("16 bytes at offset 0"), std::string::npos);
}

TEST_F(BlockOrderTest, narrow_writes_beside_a_wide_one) {
  const auto seen = expect_unordered(block_of(1, 0, 2), [&] {
    access(Space::kGlobal, AccessKind::kWrite, words + 4 * block(), 16, 16, Site::here());
    store(Space::kGlobal, words + 8 + block(), 1);
    if (runs_second()) load(Space::kGlobal, words + 4 * (1 - block()) + 3);
  });
  EXPECT_EQ(seen.line, __LINE__ - 2u);
  EXPECT_EQ(seen.other, __LINE__ - 5u);
}

TEST_F(BlockOrderTest, source_of_an_async_copy) {
  const auto seen = expect_unordered(block_of(1, 64, 2), [&] {
    store(Space::kGlobal, words + 4 * block(), 1);
    async_copy(shared_words(4), words + 4 - 4 * block(), 16, true, Site::here());
    async_commit();
    async_wait(0, Site::here());
  });
  EXPECT_EQ(seen.line, __LINE__ - 5u);
  EXPECT_EQ(seen.other, __LINE__ - 5u);
}

TEST_F(BlockOrderTest, grids_are_ordered) {
  for (const bool early : {false, true}) {
    LaunchConfig config = block_of(32, 0, 2);
    config.enable_pdl = early;
    expect_clean(config, [&] {
      wait_for_previous_grid(Site::here());
      store(Space::kGlobal, words + 32 * block() + me(), 1);
    });
    expect_clean(config, [&] {
      wait_for_previous_grid(Site::here());
      load(Space::kGlobal, words + 32 * (1 - block()) + me());
    });
  }
}

// ---- the last block reads what all have written ----

// Every part of the usual way, to be left out one at a time.
struct Parts {
  bool barrier_in_front = true, barrier_behind = true;
  AtomicOrder order = kAcqRel;
  Scope scope = Scope::kGpu;
  bool fence_in_front = false, fence_behind = false;
  Scope scope_in_front = Scope::kGpu, scope_behind = Scope::kGpu;
};

class LastBlock : public BlockOrderTest {
protected:
  // One warp, so that a vote can pass on who is last and nothing else.
  void run(const Parts &p) {
    store(Space::kGlobal, words + 32 * block() + me(), 1);
    if (p.barrier_in_front) sync_block();
    if (me() == 0) {
      if (p.fence_in_front) fence(p.scope_in_front, Site::here());
      last = add(counter, p.order, p.scope) == kBlocks - 1;
      if (p.fence_behind) fence(p.scope_behind, Site::here());
    }
    vote();
    if (p.barrier_behind) sync_block();
    if (last) load(Space::kGlobal, words + (32 * block() + 32 + 31 - me()) % (32 * kBlocks));
  }
  void ordered(const Parts &p) {
    expect_ordered(block_of(32, 0, kBlocks), [&] { run(p); });
  }
  Seen unordered(const Parts &p) {
    return expect_unordered(block_of(32, 0, kBlocks), [&] { run(p); });
  }
  bool last = false;
};

TEST_F(LastBlock, acquire_release_between_barriers) {
  ordered({});
  const Seen seen = unordered({.order = kRelaxed});
  EXPECT_NE(seen.text.find("are read, and nothing orders that behind block"), std::string::npos);
}

TEST_F(LastBlock, one_half_of_the_order_is_not_enough) {
  unordered({.order = kAcquire});
  unordered({.order = kRelease});
}

TEST_F(LastBlock, fences_around_a_relaxed_atomic) {
  ordered({.order = kRelaxed, .fence_in_front = true, .fence_behind = true});
  unordered({.order = kRelaxed, .fence_in_front = true});
  unordered({.order = kRelaxed, .fence_behind = true});
  ordered({.order = kAcquire, .fence_in_front = true});
  ordered({.order = kRelease, .fence_behind = true});
}

TEST_F(LastBlock, barrier_in_front_missing) {
  unordered({.barrier_in_front = false});
  unordered(
      {.barrier_in_front = false, .order = kRelaxed, .fence_in_front = true, .fence_behind = true});
}

TEST_F(LastBlock, barrier_behind_missing) {
  unordered({.barrier_behind = false});
  unordered(
      {.barrier_behind = false, .order = kRelaxed, .fence_in_front = true, .fence_behind = true});
}

// Two atomics that do not reach each other's block race by themselves, at the counter.
TEST_F(LastBlock, scope_of_the_atomic) {
  const Seen seen = unordered({.scope = Scope::kBlock});
  EXPECT_EQ(seen.line, seen.other);
  EXPECT_NE(seen.text.find("changed atomically at the scope of a block"), std::string::npos);
}

TEST_F(LastBlock, scope_of_the_fences) {
  const Parts good = {.order = kRelaxed, .fence_in_front = true, .fence_behind = true};
  ordered(good);
  Parts narrow = good;
  narrow.scope_in_front = Scope::kBlock;
  unordered(narrow);
  narrow = good;
  narrow.scope_behind = Scope::kBlock;
  unordered(narrow);
}

// ---- other shapes of it ----

TEST_F(BlockOrderTest, fence_without_a_flag) {
  const auto publish = [&](bool flag) {
    store(Space::kGlobal, words + block(), 1);
    fence(Scope::kGpu, Site::here());
    bool last = true;
    if (flag) last = add(counter, kRelaxed) == 1;
    fence(Scope::kGpu, Site::here());
    if (last) load(Space::kGlobal, words + 1 - block());
  };
  expect_ordered(block_of(1, 0, 2), [&] { publish(true); });
  expect_unordered(block_of(1, 0, 2), [&] { publish(false); });
}

TEST_F(BlockOrderTest, flag_that_is_no_atomic) {
  const uint32_t line = __LINE__ + 4;
  const auto seen = expect_unordered(block_of(1, 0, 2), [&] {
    store(Space::kGlobal, words + block(), 1);
    fence(Scope::kGpu, Site::here());
    const uint32_t before = load(Space::kGlobal, counter);
    store(Space::kGlobal, counter, before + 1);
  });
  EXPECT_EQ(seen.line, line);
  EXPECT_EQ(seen.other, line + 1);
}

TEST_F(BlockOrderTest, counters_of_their_own) {
  const auto publish = [&](uint32_t *mine) {
    store(Space::kGlobal, words + block(), 1);
    add(mine, kAcqRel);
    if (runs_second()) load(Space::kGlobal, words + 1 - block());
  };
  expect_ordered(block_of(1, 0, 2), [&] { publish(counter); });
  expect_unordered(block_of(1, 0, 2), [&] { publish(counter + block()); });
}

TEST_F(BlockOrderTest, writes_behind_the_release) {
  const auto publish = [&](bool early) {
    if (early) store(Space::kGlobal, words + block(), 1);
    const bool last = add(counter, kAcqRel) == 1;
    if (!early) store(Space::kGlobal, words + block(), 1);
    if (last) load(Space::kGlobal, words + 1 - block());
  };
  expect_ordered(block_of(1, 0, 2), [&] { publish(true); });
  expect_unordered(block_of(1, 0, 2), [&] { publish(false); });
}

TEST_F(BlockOrderTest, a_last_block_may_write_over_the_others) {
  const auto overwrite = [&](AtomicOrder order) {
    store(Space::kGlobal, words + block(), 1);
    if (add(counter, order) == 1) store(Space::kGlobal, words + 1 - block(), 2);
  };
  expect_ordered(block_of(1, 0, 2), [&] { overwrite(kAcqRel); });
  expect_unordered(block_of(1, 0, 2), [&] { overwrite(kRelaxed); });
}

// Block 2 meets block 1 only, and sees what block 1 had seen. In ascending order.
TEST_F(BlockOrderTest, links_of_a_chain) {
  const LaunchConfig config = block_of(1, 0, 3);
  const auto link = [&](AtomicOrder second) {
    if (block() == 0) store(Space::kGlobal, words, 1);
    if (block() <= 1) add(counter, kAcqRel);
    if (block() >= 1) add(counter + 1, second);
    if (block() == 2) load(Space::kGlobal, words);
  };
  EXPECT_EQ(launch(&stream, config, [&] { link(kAcqRel); }), LaunchStatus::kOk);
  EXPECT_EQ(launch(&stream, config, [&] { link(kAcquire); }), LaunchStatus::kHazard);
  EXPECT_EQ(launch(&stream, config, [&] { link(kRelease); }), LaunchStatus::kHazard);
}

// A relaxed atomic in between neither releases nor hides what it reads.
TEST_F(BlockOrderTest, release_sequences) {
  const auto body = [&](AtomicOrder middle) {
    if (block() == 0) store(Space::kGlobal, words, 1);
    if (block() == 1) store(Space::kGlobal, words + 1, 1);
    add(counter, block() == 1 ? middle : kAcqRel);
    if (block() == 2) load(Space::kGlobal, words);
    return block();
  };
  EXPECT_EQ(launch(&stream, block_of(1, 0, 3), [&] { body(kRelaxed); }), LaunchStatus::kOk);
  const auto reads_the_middle = [&](AtomicOrder middle) {
    if (body(middle) == 2) load(Space::kGlobal, words + 1);
  };
  EXPECT_EQ(launch(&stream, block_of(1, 0, 3), [&] { reads_the_middle(kRelaxed); }),
            LaunchStatus::kHazard);
  EXPECT_EQ(launch(&stream, block_of(1, 0, 3), [&] { reads_the_middle(kRelease); }),
            LaunchStatus::kOk);
}

// ---- plain beside atomic ----

TEST_F(BlockOrderTest, plain_read_of_a_counter) {
  const auto body = [&](bool behind) {
    if (!behind) load(Space::kGlobal, counter);
    if (add(counter, kAcqRel) == 1) load(Space::kGlobal, counter);
  };
  expect_ordered(block_of(1, 0, 2), [&] { body(true); });
  const auto seen = expect_unordered(block_of(1, 0, 2), [&] { body(false); });
  EXPECT_NE(seen.text.find("by which they were changed atomically at"), std::string::npos);
}

TEST_F(BlockOrderTest, plain_reset_of_a_counter) {
  const auto body = [&](uint32_t blocks) {
    if (add(counter, kAcqRel) == blocks - 1) store(Space::kGlobal, counter, 0);
  };
  expect_ordered(block_of(1, 0, kBlocks), [&] { body(kBlocks); });
  const auto seen = expect_unordered(block_of(1, 0, kBlocks), [&] { body(kBlocks - 1); });
  EXPECT_NE(seen.text.find("are changed atomically, and nothing"), std::string::npos);
}

} // namespace
} // namespace assay::simt
