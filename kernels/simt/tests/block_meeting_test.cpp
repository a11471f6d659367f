// SPDX-License-Identifier: Apache-2.0
// How threads of a block tell each other what goes out to other blocks or came in: barriers of
// every kind.
#include "kernels/simt/tests/block_order_fixture.h"

namespace assay::simt {
namespace {

using enum AtomicOrder;

// Thread 0 counts for another thread of its block, which reads what that of the other block wrote.
class Inside : public BlockOrderTest {
protected:
  // By way of two meetings: of the writer's store with the counter, and of the counter with its
  // load.
  template <class F, class G>
  auto publish(uint32_t writer, F first, G second) {
    return [=, this] {
      if (me() == writer) store(Space::kGlobal, words + block(), 1);
      first();
      if (me() == 0) add(counter, kAcqRel);
      second();
      if (me() == writer && runs_second()) load(Space::kGlobal, words + 1 - block());
    };
  }
};

TEST_F(Inside, named_barriers) {
  const LaunchConfig two_warps = block_of(64, 0, 2);
  const auto all = [] { sync_named(1, 64); };
  const auto apart = [] { sync_named(2 + me() / 32, 32); };
  expect_ordered(two_warps, publish(40, all, all));
  expect_unordered(two_warps, publish(40, apart, all));
  expect_unordered(two_warps, publish(40, all, apart));
}

TEST_F(Inside, barriers_of_a_warp) {
  const LaunchConfig warp = block_of(32, 0, 2);
  const auto all = [] { warp_barrier(~0u); };
  const auto halves = [] { warp_barrier(me() < 16 ? 0xffffu : 0xffff0000u); };
  expect_ordered(warp, publish(20, all, all));
  expect_unordered(warp, publish(20, halves, all));
  expect_unordered(warp, publish(20, all, halves));
  expect_unordered(warp, publish(
                             20, [] { vote(); }, all));
  expect_ordered(warp, publish(12, halves, halves));
}

// A meeting passes on what its members know by others.
TEST_F(Inside, two_steps) {
  const LaunchConfig two_warps = block_of(64, 0, 2);
  const auto all = [] { sync_named(1, 64); };
  const auto lanes = [] { warp_barrier(me() % 32 < 16 ? 0xffffu : 0xffff0000u); };
  const auto to_first = [&] { lanes(), all(); };
  expect_ordered(two_warps, publish(60, to_first, all));
}

TEST_F(Inside, mbarriers) {
  const auto body = [&](bool store_first, bool wait) {
    auto *barriers = reinterpret_cast<uint64_t *>(shared_words(4));
    if (me() == 0) {
      mbarrier_init(barriers, 1, Site::here());
      mbarrier_init(barriers + 1, 1, Site::here());
    }
    sync_block();
    if (me() == 0) {
      mbarrier_wait(barriers, 0, Site::here());
      add(counter, kAcqRel);
      mbarrier_arrive(barriers + 1, Site::here());
    } else if (me() == 40) {
      if (store_first) store(Space::kGlobal, words + block(), 1);
      mbarrier_arrive(barriers, Site::here());
      if (!store_first) store(Space::kGlobal, words + block(), 1);
      if (wait) mbarrier_wait(barriers + 1, 0, Site::here());
      if (runs_second()) load(Space::kGlobal, words + 1 - block());
    }
  };
  const LaunchConfig two_warps = block_of(64, 64, 2);
  expect_ordered(two_warps, [&] { body(true, true); });
  expect_unordered(two_warps, [&] { body(false, true); });
  expect_unordered(two_warps, [&] { body(true, false); });
}

// Thread 20 arrives in phase 0, and behind its store in phase 1.
TEST_F(Inside, phases_of_an_mbarrier) {
  const auto body = [&](uint32_t awaited) {
    auto *barrier = reinterpret_cast<uint64_t *>(shared_words(4));
    const auto arrive = [&] { mbarrier_arrive(barrier, Site::here()); };
    if (me() == 0) mbarrier_init(barrier, 2, Site::here());
    sync_block();
    if (me() == 20 || me() == 21) arrive();
    vote();
    if (me() == 20) store(Space::kGlobal, words + block(), 1), arrive();
    if (me() == 21 && awaited == 1) arrive();
    vote();
    if (me() == 0) {
      mbarrier_wait(barrier, awaited, Site::here());
      add(counter, kAcqRel);
    }
    vote();
    if (me() == 21 && awaited == 0) arrive();
    sync_block();
    if (me() == 20 && runs_second()) load(Space::kGlobal, words + 1 - block());
  };
  expect_ordered(block_of(32, 64, 2), [&] { body(1); });
  expect_unordered(block_of(32, 64, 2), [&] { body(0); });
}

// Thread 21 hears of thread 20's store, and tells thread 0 or does not.
TEST_F(Inside, mbarrier_passed_by_another_thread) {
  const auto body = [&](uint32_t told) {
    auto *barrier = reinterpret_cast<uint64_t *>(shared_words(4));
    if (me() == 0) mbarrier_init(barrier, 1, Site::here());
    sync_block();
    if (me() == 20)
      store(Space::kGlobal, words + block(), 1), mbarrier_arrive(barrier, Site::here());
    if (me() == 21) mbarrier_wait(barrier, 0, Site::here());
    vote();
    if (me() == told || me() == 21) warp_barrier(1u << told | 1u << 21);
    vote();
    if (me() == 0) add(counter, kAcqRel);
    sync_block();
    if (me() == 20 && runs_second()) load(Space::kGlobal, words + 1 - block());
  };
  expect_ordered(block_of(32, 64, 2), [&] { body(0); });
  expect_unordered(block_of(32, 64, 2), [&] { body(1); });
}

// The counter's thread may be told by an atomic of the block's own scope.
TEST_F(Inside, atomics_of_the_block) {
  const auto body = [&](AtomicOrder order) {
    uint32_t *own = counter + 8 + block();
    if (me() == 20) {
      store(Space::kGlobal, words + block(), 1);
      add(own, kRelease, Scope::kBlock);
    }
    vote();
    if (me() == 0) {
      add(own, order, Scope::kBlock);
      add(counter, kAcqRel);
    }
    sync_block();
    if (runs_second() && me() == 5) load(Space::kGlobal, words + 1 - block());
  };
  expect_ordered(block_of(32, 0, 2), [&] { body(kAcquire); });
  expect_unordered(block_of(32, 0, 2), [&] { body(kRelaxed); });
}

} // namespace
} // namespace assay::simt
