// SPDX-License-Identifier: Apache-2.0
// Shared memory without the order that it needs: barriers and collectives.
#include "kernels/simt/tests/order_fixture.h"

namespace assay::simt {
namespace {

TEST_F(OrderTest, no_barrier_between_write_and_read) {
  expect_seen(block_of(64, 256), [&](bool right) {
    uint32_t *words = shared_words(64);
    store(kShared, words + me(), me(), party());
    if (right) sync_block();
    load(kShared, words + (me() + 33) % 64, party());
  });
}

TEST_F(OrderTest, overwritten_while_others_read) {
  expect_seen(block_of(64, 256), [&](bool right) {
    uint32_t *words = shared_words(64);
    store(kShared, words + me(), me());
    sync_block();
    load(kShared, words + 63 - me(), party());
    if (right) sync_block();
    store(kShared, words + me(), 0, party());
  });
}

TEST_F(OrderTest, two_writers_of_a_word) {
  expect_seen(block_of(64, 256), [&](bool right) {
    uint32_t *words = shared_words(64);
    store(kShared, words + (right ? me() : me() % 32), 7, party());
  });
}

TEST_F(OrderTest, lanes_that_write_one_word) {
  expect_seen(block_of(32, 256), [&](bool right) {
    if (!right || me() == 0) store(kShared, shared_words(1), me(), party());
  });
}

TEST_F(OrderTest, barrier_of_a_subset) {
  expect_seen(block_of(96, 512), [&](bool right) {
    uint32_t *words = shared_words(96);
    store(kShared, words + me(), me(), party());
    if (right)
      sync_named(1, 96);
    else if (warp() < 2)
      sync_named(1, 64);
    load(kShared, words + (me() + 32) % 96, party());
  });
}

TEST_F(OrderTest, barriers_of_two_pairs) {
  expect_seen(block_of(128, 512), [&](bool right) {
    uint32_t *words = shared_words(128);
    store(kShared, words + me(), me(), party());
    sync_named(1 + me() / 64, 64);
    if (right) sync_named(3, 128);
    load(kShared, words + (me() + 64) % 128, party());
  });
}

TEST_F(OrderTest, warp_barrier_missing) {
  expect_seen(block_of(32, 256), [&](bool right) {
    uint32_t *words = shared_words(32);
    store(kShared, words + me(), me(), party());
    if (right) warp_barrier(~0u);
    load(kShared, words + (me() ^ 1), party());
  });
}

TEST_F(OrderTest, shuffle_taken_as_a_barrier) {
  for (const Collective kind : {Collective::kShflXor, Collective::kAny, Collective::kMma})
    expect_seen(block_of(32, 256), [&](bool right) {
      uint32_t *words = shared_words(32);
      store(kShared, words + me(), me(), party());
      shuffle(kind);
      if (right) warp_barrier(~0u);
      load(kShared, words + (me() ^ 1), party());
    });
}

TEST_F(OrderTest, shuffle_in_front_of_an_overwrite) {
  expect_seen(block_of(32, 256), [&](bool right) {
    uint32_t *words = shared_words(32);
    store(kShared, words + me(), me());
    warp_barrier(~0u);
    load(kShared, words + (me() ^ 1), party());
    shuffle(Collective::kShflIdx);
    if (right) warp_barrier(~0u);
    store(kShared, words + me(), 0, party());
  });
}

TEST_F(OrderTest, warp_barrier_of_half_a_warp) {
  expect_seen(block_of(32, 256), [&](bool right) {
    uint32_t *words = shared_words(32);
    store(kShared, words + me(), me(), party());
    warp_barrier(right ? ~0u : me() < 16 ? 0xffffu : 0xffff0000u);
    load(kShared, words + (me() ^ 16), party());
  });
}

TEST_F(OrderTest, warp_barrier_where_the_block_must_meet) {
  expect_seen(block_of(64, 256), [&](bool right) {
    uint32_t *words = shared_words(64);
    store(kShared, words + me(), me(), party());
    warp_barrier(~0u);
    if (right) sync_block();
    load(kShared, words + (me() ^ 32), party());
  });
}

void read_rows(const WarpCall &call) {
  for (uint32_t lane = 0; lane < kLanes; ++lane)
    access_for_lane(lane, kShared, AccessKind::kRead, call.in[lane], 16, 16, call.site);
}

TEST_F(OrderTest, rows_of_a_matrix_not_awaited) {
  static Site reader;
  expect_seen(block_of(32, 512), [&](bool right) {
    uint32_t *words = shared_words(128);
    reader = party();
    access(kShared, AccessKind::kWrite, words + 4 * me(), 16, 16, party());
    if (right) warp_barrier(~0u);
    warp_collective({Collective::kLdmatrix, ~0u, 4, words + 4 * (31 - me()), nullptr, 0, read_rows},
                    reader);
  });
}

TEST_F(OrderTest, rows_of_a_matrix_overwritten) {
  static Site reader;
  expect_seen(block_of(32, 512), [&](bool right) {
    uint32_t *words = shared_words(128);
    reader = party();
    access(kShared, AccessKind::kWrite, words + 4 * me(), 16, 16, Site::here());
    warp_barrier(~0u);
    warp_collective({Collective::kLdmatrix, ~0u, 4, words + 4 * (31 - me()), nullptr, 0, read_rows},
                    reader);
    if (right) warp_barrier(~0u);
    store(kShared, words + 4 * me(), 1, party());
  });
}

TEST_F(OrderTest, one_buffer_where_two_are_needed) {
  expect_seen(block_of(64, 512), [&](bool right) {
    uint32_t *words = shared_words(128);
    for (uint32_t round = 0; round < 4; ++round) {
      uint32_t *buffer = words + (right ? round % 2 * 64 : 0);
      store(kShared, buffer + me(), round, party());
      sync_block();
      load(kShared, buffer + 63 - me(), party());
    }
  });
}

TEST_F(OrderTest, step_of_a_reduction_without_a_barrier) {
  expect_seen(block_of(128, 512), [&](bool right) {
    uint32_t *words = shared_words(128);
    store(kShared, words + me(), 1);
    sync_block();
    for (uint32_t half = 64; half != 0; half /= 2) {
      uint32_t sum = 0;
      if (me() < half)
        sum = load(kShared, words + me(), party()) + load(kShared, words + me() + half, party());
      if (me() < half) store(kShared, words + me(), sum, party());
      if (right || half != 64) sync_block();
    }
  });
}

TEST_F(OrderTest, last_steps_of_a_reduction_in_one_warp) {
  expect_seen(block_of(64, 256), [&](bool right) {
    uint32_t *words = shared_words(64);
    store(kShared, words + me(), 1);
    sync_block();
    if (me() >= 32) return;
    for (uint32_t half = 16; half != 0; half /= 2) {
      const uint32_t sum = load(kShared, words + me() + half, party());
      if (right) warp_barrier(~0u);
      store(kShared, words + me(), sum, party());
      if (right) warp_barrier(~0u);
    }
  });
}

TEST_F(OrderTest, next_value_before_all_have_read) {
  expect_seen(block_of(64, 256), [&](bool right) {
    uint32_t *words = shared_words(1);
    for (uint32_t round = 0; round < 3; ++round) {
      if (me() == 40) store(kShared, words, round, party());
      sync_block();
      load(kShared, words, party());
      if (right) sync_block();
    }
  });
}

TEST_F(OrderTest, parts_of_a_vector) {
  expect_seen(block_of(64, 256), [&](bool right) {
    uint32_t *words = shared_words(64);
    store(kShared, words + me(), me(), party());
    if (right) sync_block();
    if (me() < 4) access(kShared, AccessKind::kRead, words + 16 * me() + 4, 16, 16, party());
  });
}

TEST_F(OrderTest, bytes_beside_each_other_are_no_race) {
  expect_clean(block_of(64, 256), [&] {
    auto *bytes = reinterpret_cast<unsigned char *>(shared_words(64));
    access(kShared, AccessKind::kWrite, bytes + me(), 1, 1, Site::here());
    access(kShared, AccessKind::kRead, bytes + me(), 1, 1, Site::here());
    sync_block();
    access(kShared, AccessKind::kRead, bytes + me() / 16 * 16, 16, 16, Site::here());
    sync_block();
    access(kShared, AccessKind::kWrite, bytes + 63 - me(), 1, 1, Site::here());
  });
}

TEST_F(OrderTest, report_names_both_parties) {
  expect_seen(block_of(64, 256), [&](bool right) {
    uint32_t *words = shared_words(64);
    if (me() == 5) store(kShared, words, 1, party());
    if (right) sync_block();
    if (me() == 40) load(kShared, words, party());
  });
  EXPECT_NE(message.find("4 bytes at shared offset 0 are read"), std::string::npos) << message;
  EXPECT_NE(message.find("thread 5"), std::string::npos) << message;
  EXPECT_NE(message.find("[block 0, thread 40]"), std::string::npos) << message;
}

} // namespace
} // namespace assay::simt
