// SPDX-License-Identifier: Apache-2.0
// mbarriers, async copies and matrix operations without the order that they need.
#include "kernels/simt/tests/order_fixture.h"

namespace assay::simt {
namespace {

// ---- mbarriers: warp 0 produces, warp 1 consumes ----

class RingOrder : public OrderTest {
protected:
  struct Parts {
    bool wait_full = true, wait_empty = true;
    bool warp_barrier = true;    // of the producer, in front of its arrival
    bool release_behind = true;  // the consumer releases a slot behind its reads
    bool announce_behind = true; // the producer announces a slot behind its writes
    uint32_t parity = 0;         // added to that of the consumer
    bool own_slot = true;        // the consumer waits for the slot that it reads
    uint32_t consumers = 2, releases = 64;
  };
  static constexpr uint32_t kSlots = 2, kRounds = 6;

  void run(const Parts &p) {
    uint32_t *words = shared_words(4 * kSlots + 32 * kSlots);
    const auto full = [&](uint32_t s) { return words + 2 * (s % kSlots); };
    const auto empty = [&](uint32_t s) { return words + 2 * kSlots + 2 * (s % kSlots); };
    if (me() == 0)
      for (uint32_t s = 0; s < kSlots; ++s) {
        mbarrier_init(full(s), 1, Site::here());
        mbarrier_init(empty(s), p.releases, Site::here());
      }
    sync_block();
    for (uint32_t round = 0; round < kRounds; ++round) {
      const uint32_t s = round % kSlots, parity = round / kSlots % 2;
      uint32_t *slot = words + 4 * kSlots + 32 * s;
      if (warp() == 0) {
        if (p.wait_empty) mbarrier_wait(empty(s), parity ^ 1, party());
        if (!p.announce_behind && lane() == 0) mbarrier_arrive(full(s), party());
        store(kShared, slot + lane(), round, party());
        if (p.warp_barrier) warp_barrier(~0u);
        if (p.announce_behind && lane() == 0) mbarrier_arrive(full(s), party());
      } else if (warp() <= p.consumers) {
        if (p.wait_full) mbarrier_wait(full(p.own_slot ? s : 0), (parity + p.parity) % 2, party());
        if (!p.release_behind) mbarrier_arrive(empty(s), party());
        load(kShared, slot + 31 - lane(), party());
        if (p.release_behind) mbarrier_arrive(empty(s), party());
      }
    }
  }
  void seen(const Parts &wrong) {
    expect_seen(block_of(96, 512), [&](bool right) { run(right ? Parts{} : wrong); });
  }
};

TEST_F(RingOrder, full_slot_not_awaited) { seen({.wait_full = false}); }
TEST_F(RingOrder, wrong_phase) { seen({.parity = 1}); }
TEST_F(RingOrder, slot_reused_before_it_is_released) { seen({.wait_empty = false}); }
TEST_F(RingOrder, slot_announced_before_it_is_written) { seen({.announce_behind = false}); }
TEST_F(RingOrder, other_lanes_of_the_producer) { seen({.warp_barrier = false}); }
TEST_F(RingOrder, slot_released_before_it_is_read) { seen({.release_behind = false}); }
TEST_F(RingOrder, barrier_of_another_slot) { seen({.own_slot = false}); }

TEST_F(RingOrder, release_of_one_consumer_counts) { seen({.releases = 32}); }

// ---- async copies ----

class CopyOrder : public OrderTest {
protected:
  void copy(uint32_t *to, const uint32_t *from, Site site) {
    async_copy(to, from, 16, true, site);
    async_commit();
  }
};

TEST_F(CopyOrder, read_before_the_wait) {
  expect_seen(block_of(32, 512), [&](bool right) {
    uint32_t *words = shared_words(128);
    copy(words + 4 * me(), global + 4 * me(), party());
    if (right) async_wait(0, Site::here());
    load(kShared, words + 4 * me(), party());
  });
}

TEST_F(CopyOrder, wait_of_too_few_groups) {
  expect_seen(block_of(32, 1024), [&](bool right) {
    uint32_t *words = shared_words(256);
    copy(words + 4 * me(), global + 4 * me(), party());
    copy(words + 128 + 4 * me(), global + 4 * me(), party());
    async_wait(right ? 0 : 1, Site::here());
    load(kShared, words + 128 + 4 * me(), party());
    async_wait(0, Site::here());
  });
}

TEST_F(CopyOrder, awaited_by_the_warp_and_read_by_another) {
  expect_seen(block_of(64, 1024), [&](bool right) {
    uint32_t *words = shared_words(256);
    copy(words + 4 * me(), global + 4 * me(), party());
    async_wait(0, Site::here());
    warp_barrier(~0u);
    if (right) sync_block();
    load(kShared, words + 4 * (me() ^ 32), party());
  });
}

TEST_F(CopyOrder, awaited_by_its_own_lane) {
  expect_seen(block_of(32, 512), [&](bool right) {
    uint32_t *words = shared_words(128);
    copy(words + 4 * me(), global + 4 * me(), party());
    async_wait(0, Site::here());
    if (right) warp_barrier(~0u);
    load(kShared, words + 4 * (me() ^ 1), party());
  });
}

TEST_F(CopyOrder, barrier_in_front_of_the_wait) {
  expect_seen(block_of(64, 1024), [&](bool right) {
    uint32_t *words = shared_words(256);
    copy(words + 4 * me(), global + 4 * me(), party());
    if (right) async_wait(0, Site::here());
    sync_block();
    async_wait(0, Site::here());
    load(kShared, words + 4 * (me() ^ 32), party());
  });
}

TEST_F(CopyOrder, stage_copied_over_while_others_read) {
  expect_seen(block_of(32, 512), [&](bool right) {
    uint32_t *words = shared_words(128);
    for (uint32_t tile = 0; tile < 3; ++tile) {
      copy(words + 4 * me(), global + 4 * me(), party());
      async_wait(0, Site::here());
      warp_barrier(~0u);
      load(kShared, words + 4 * (31 - me()), party());
      if (right) warp_barrier(~0u);
    }
  });
}

TEST_F(CopyOrder, source_overwritten_in_flight) {
  expect_seen(block_of(64, 512), [&](bool right) {
    uint32_t *words = shared_words(128);
    if (warp() == 0) copy(words + 4 * me(), global + 4 * me(), party());
    if (right) async_wait(0, Site::here());
    sync_block();
    if (warp() == 1) store(Space::kGlobal, global + 4 * lane(), 1, party());
    async_wait(0, Site::here());
  });
}

// ---- matrix operations ----

class MatrixOrder : public OrderTest {
protected:
  struct Nothing final : MatrixOperation {
    explicit Nothing(const void *words) : words_(words) {}
    void postpone() override {}
    void complete() override {}
    Registers result() const override { return {words_, 16}; }
    bool overwrites() const override { return false; }
    bool operands_kept() const override { return true; }
    const void *words_; // stands for registers of the result, too
  };
  static void step(Collective kind, int arg, ApplyFunction apply, Site site) {
    warp_collective({kind, ~0u, 0, nullptr, nullptr, arg, apply}, site);
  }
  // Warps 0 to 3 multiply what lies at `words`, 16 bytes for each lane.
  static void multiply(const uint32_t *words, Site site) {
    step(
        Collective::kWgmmaFence, 0, [](const WarpCall &c) { matrix_fence(c.site); }, site);
    warp_collective({Collective::kWgmma, ~0u, 4, words, nullptr, 0,
                     [](const WarpCall &c) {
                       access_for_lane(0, kShared, AccessKind::kMatrixRead, c.in[0], 16, 16,
                                       c.site);
                       matrix_issue(std::make_unique<Nothing>(c.in[0]), c.site);
                     }},
                    site);
    step(
        Collective::kWgmmaCommit, 0, [](const WarpCall &c) { matrix_commit(c.site); }, site);
  }
  // Names the results of all operations.
  static void wait(int pending, Site site = Site::here()) {
    const auto apply = [](const WarpCall &c) {
      const Registers all = {shared_words(1), 512};
      matrix_wait(static_cast<uint32_t>(c.arg[0]), {&all, 1}, c.site);
    };
    step(Collective::kWgmmaWait, pending, apply, site);
  }
  void write(uint32_t *words, Site site) {
    access(kShared, AccessKind::kWrite, words, 16, 16, site);
    fence_async_proxy(Site::here());
  }
};

TEST_F(MatrixOrder, operands_overwritten_in_flight) {
  expect_seen(block_of(128, 512), [&](bool right) {
    uint32_t *words = shared_words(128);
    if (me() == 0) write(words, Site::here());
    sync_block();
    multiply(words, party());
    if (right) wait(0);
    sync_block();
    if (me() == 0) write(words, party());
    wait(0);
  });
}

TEST_F(MatrixOrder, wait_of_too_few_groups) {
  expect_seen(block_of(128, 512), [&](bool right) {
    uint32_t *words = shared_words(128);
    if (me() == 0) write(words, Site::here());
    if (me() == 0) write(words + 4, Site::here());
    sync_block();
    multiply(words, Site::here());
    multiply(words + 4, party());
    wait(right ? 0 : 1, party());
    sync_block();
    if (me() == 0) write(words + 4, party());
    wait(0);
  });
}

TEST_F(MatrixOrder, operands_read_without_a_barrier) {
  expect_seen(block_of(128, 512), [&](bool right) {
    uint32_t *words = shared_words(128);
    if (lane() == 0) write(words + 4 * warp(), party());
    sync_block();
    if (lane() == 0) write(words + 64 + 4 * warp(), party());
    if (right) sync_block();
    multiply(words + 64 + 4 * (warp() ^ 1), party());
    wait(0);
  });
}

TEST_F(MatrixOrder, overwritten_behind_the_wait_without_a_barrier) {
  expect_seen(block_of(128, 512), [&](bool right) {
    uint32_t *words = shared_words(128);
    if (me() == 0) write(words, Site::here());
    sync_block();
    multiply(words, party());
    wait(0);
    if (right) sync_block();
    if (me() == 0) write(words, party());
  });
}

TEST_F(MatrixOrder, released_by_one_lane_behind_the_wait) {
  expect_seen(block_of(160, 512), [&](bool right) {
    uint32_t *words = shared_words(128);
    uint32_t *barrier = words + 64;
    if (me() == 128) mbarrier_init(barrier, 4, Site::here());
    if (me() == 128) write(words, Site::here());
    sync_block();
    if (warp() < 4) {
      multiply(words, party());
      if (!right && lane() == 0) mbarrier_arrive(barrier, party());
      wait(0);
      if (right && lane() == 0) mbarrier_arrive(barrier, party());
    } else {
      mbarrier_wait(barrier, 0, Site::here());
      if (lane() == 0) write(words, party());
    }
  });
}

} // namespace
} // namespace assay::simt
