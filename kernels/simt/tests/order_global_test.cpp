// SPDX-License-Identifier: Apache-2.0
// Global memory without the order that it needs: inside a block, and what other blocks have read.
#include "kernels/simt/tests/order_fixture.h"

namespace assay::simt {
namespace {

using enum AtomicOrder;
constexpr auto kGlobal = Space::kGlobal;

// ---- inside a block ----

TEST_F(OrderTest, global_scratch_without_a_barrier) {
  expect_seen(block_of(64), [&](bool right) {
    store(kGlobal, global + me(), 1, party());
    if (right) sync_block();
    load(kGlobal, global + 63 - me(), party());
  });
}

TEST_F(OrderTest, global_scratch_overwritten) {
  expect_seen(block_of(64), [&](bool right) {
    load(kGlobal, global + 63 - me(), party());
    if (right) sync_block();
    store(kGlobal, global + me(), 1, party());
  });
}

TEST_F(OrderTest, global_word_of_two_writers) {
  expect_seen(block_of(64), [&](bool right) {
    if (!right || warp() == 0) store(kGlobal, global + lane(), 1, party());
  });
}

TEST_F(OrderTest, fence_is_no_barrier) {
  expect_seen(block_of(64), [&](bool right) {
    store(kGlobal, global + me(), 1, party());
    fence(Scope::kGpu, Site::here());
    if (right) sync_block();
    load(kGlobal, global + 63 - me(), party());
  });
}

// Thread 0 writes and raises a flag, which thread 32 awaits.
class FlagOrder : public OrderTest {
protected:
  void run(AtomicOrder raises, AtomicOrder awaits, bool fences, Scope scope) {
    uint32_t *flag = global + 64;
    if (me() == 0) {
      store(kGlobal, global, 1, party());
      if (fences) fence(scope, Site::here());
      add(flag, raises, scope);
    } else if (me() == 32) {
      await_word(flag, 1, awaits, scope, Site::here());
      if (fences) fence(scope, Site::here());
      load(kGlobal, global, party());
    }
  }
  void seen(AtomicOrder raises, AtomicOrder awaits) {
    expect_seen(block_of(64), [&](bool right) {
      run(right ? kRelease : raises, right ? kAcquire : awaits, false, Scope::kBlock);
    });
  }
};

TEST_F(FlagOrder, flag_raised_without_release) { seen(kRelaxed, kAcquire); }
TEST_F(FlagOrder, flag_awaited_without_acquire) { seen(kRelease, kRelaxed); }
TEST_F(FlagOrder, flag_without_fences) {
  expect_seen(block_of(64), [&](bool right) { run(kRelaxed, kRelaxed, right, Scope::kBlock); });
}

TEST_F(OrderTest, plain_read_beside_an_atomic) {
  expect_seen(block_of(64), [&](bool right) {
    if (me() == 0)
      atomic_access(global, 4, AtomicKind::kReadModifyWrite, kAcqRel, Scope::kGpu, party());
    if (right) sync_block();
    if (me() == 40) load(kGlobal, global, party());
  });
}

TEST_F(OrderTest, first_thread_writes_for_all_too_early) {
  expect_seen(block_of(64), [&](bool right) {
    if (me() != 0) load(kGlobal, global + 7, party());
    if (right) sync_block();
    if (me() == 0) store(kGlobal, global + 7, 1, party());
  });
}

// ---- between blocks: reads ----

TEST_F(OrderTest, other_blocks_read_overtaken_by_a_write) {
  expect_seen(block_of(32, 0, 2), [&](bool right) {
    if (block() == 0) load(kGlobal, global + me(), party());
    if (block() == 1) store(kGlobal, global + (right ? 64 : 0) + me(), 1, party());
  });
}

TEST_F(OrderTest, output_that_is_an_input_of_another_block) {
  expect_seen(block_of(64, 0, 4), [&](bool right) {
    const uint32_t next = (block() + 1) % 4;
    load(kGlobal, global + 64 * next + me(), party());
    store(kGlobal, global + (right ? 256 : 0) + 64 * block() + me(), 1, party());
  });
}

TEST_F(OrderTest, last_block_overwrites_what_others_read) {
  expect_seen(block_of(32, 0, 3), [&](bool right) {
    load(kGlobal, global + me(), party());
    sync_block();
    if (me() != 0) return;
    if (add(global + 64, right ? kAcqRel : kRelaxed) == 2) store(kGlobal, global, 1, party());
  });
}

TEST_F(OrderTest, only_one_of_many_readers_is_ordered) {
  expect_seen(block_of(32, 0, 3), [&](bool right) {
    load(kGlobal, global + 5, party());
    if (right) sync_block(); // else the release is of one reader
    if (me() != 0) return;
    if (add(global + 64, kAcqRel) == 2) store(kGlobal, global + 5, 1, party());
  });
}

TEST_F(OrderTest, scope_of_the_readers_fence) {
  expect_seen(block_of(1, 0, 3), [&](bool right) {
    load(kGlobal, global + 5, party());
    fence(right ? Scope::kGpu : Scope::kBlock, Site::here());
    const bool last = add(global + 64, kRelaxed) == 2;
    fence(Scope::kGpu, Site::here());
    if (last) store(kGlobal, global + 5, 1, party());
  });
}

TEST_F(OrderTest, source_of_a_copy_in_another_block) {
  expect_seen(block_of(1, 64, 2), [&](bool right) {
    if (block() == 0) {
      async_copy(shared_words(4), global, 16, true, party());
      async_commit();
      async_wait(0, Site::here());
    } else {
      store(kGlobal, global + (right ? 4 : 2), 1, party());
    }
  });
}

TEST_F(OrderTest, reads_of_an_earlier_grid_are_over) {
  expect_clean(block_of(64, 0, 2), [&] {
    if (block() == 0) load(kGlobal, global + me());
  });
  expect_clean(block_of(64, 0, 2), [&] {
    if (block() == 1) store(kGlobal, global + me(), 1);
  });
}

} // namespace
} // namespace assay::simt
