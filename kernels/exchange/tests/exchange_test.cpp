// SPDX-License-Identifier: Apache-2.0
// What a single case of the harness does not have: many calls on the same windows, two groups, a
// peer that is dead or late.
#include <algorithm>

#include "kernels/exchange/tests/ranks_fixture.h"

namespace assay {
namespace {

using simt::Order;

void expect_no_hazard(const simt::Stream &stream) {
  for (const simt::Hazard &hazard : stream.hazards)
    ADD_FAILURE() << hazard.message;
}

/// Calls whose rows go up and down.
int rows_of(int call, int max_rows) { return 1 + call * 7 % max_rows; }

class ManyCalls : public testing::TestWithParam<std::tuple<int, assay_exchange_heads, Order>> {};

TEST_P(ManyCalls, every_one_is_right) {
  const auto [ranks, mode, order] = GetParam();
  simt::Stream stream;
  stream.schedule.order = order;
  stream.schedule.seed = 5;
  const ExchangeSizes sizes = {ranks, 9, 5, 24, 9, mode};
  RankGroup group(stream, sizes);
  size_t wrong = 0;
  simt::run_ranks(stream, static_cast<uint32_t>(ranks), [&](uint32_t rank) {
    for (int call = 0; call < 20; ++call) {
      const int rows = rows_of(call, sizes.max_rows);
      EXPECT_EQ(group.exchange(static_cast<int>(rank), call, rows), ASSAY_OK) << assay_last_error();
      wrong += group.wrong(static_cast<int>(rank), call, rows);
    }
  });
  EXPECT_EQ(wrong, 0u);
  for (const uint32_t *status : group.status)
    EXPECT_EQ(*status, 0u);
  expect_no_hazard(stream);
}

INSTANTIATE_TEST_SUITE_P(
    all, ManyCalls,
    testing::Combine(testing::Values(1, 2, 3, 8),
                     testing::Values(ASSAY_EXCHANGE_SCATTER, ASSAY_EXCHANGE_ALL),
                     testing::Values(Order::kAscending, Order::kDescending, Order::kSeeded)));

// Epochs are counted with wrap: flags and words of a window that has seen 2^32 - 2 calls.
TEST(Exchange, epochs_wrap) {
  simt::Stream stream;
  RankGroup group(stream, {2, 3, 4, 8, 3});
  for (void *window : group.windows)
    std::fill_n(static_cast<uint32_t *>(window), 3 * 32, 0xfffffffeu);
  size_t wrong = 0;
  simt::run_ranks(stream, 2, [&](uint32_t rank) {
    for (int call = 0; call < 5; ++call) {
      EXPECT_EQ(group.exchange(static_cast<int>(rank), call, 3), ASSAY_OK) << assay_last_error();
      wrong += group.wrong(static_cast<int>(rank), call, 3);
    }
  });
  EXPECT_EQ(wrong, 0u);
  expect_no_hazard(stream);
}

TEST(Exchange, a_dead_peer_is_named) {
  simt::Stream stream;
  RankGroup group(stream, {3, 2, 6, 16, 2, ASSAY_EXCHANGE_ALL});
  simt::run_ranks(stream, 3, [&](uint32_t rank) {
    if (rank == 1) return;
    EXPECT_EQ(group.exchange(static_cast<int>(rank), 0, 2), ASSAY_OK) << assay_last_error();
  });
  expect_no_hazard(stream);
  for (const int rank : {0, 2}) {
    EXPECT_EQ(*group.status[rank], 1u << 1);
    const size_t elements = group.states() * 16;
    EXPECT_TRUE(std::all_of(group.o[rank], group.o[rank] + elements,
                            [](float x) { return std::isnan(x); }));
    EXPECT_TRUE(std::isnan(group.lse[rank][0]));
  }
  EXPECT_EQ(*group.status[1], 0u);
}

// After zeros on all ranks the windows serve again.
TEST(Exchange, windows_serve_again_after_a_dead_peer) {
  simt::Stream stream;
  RankGroup group(stream, {2, 2, 4, 8, 2});
  simt::run_ranks(stream, 2, [&](uint32_t rank) {
    if (rank == 0) EXPECT_EQ(group.exchange(0, 0, 2), ASSAY_OK);
  });
  EXPECT_EQ(*group.status[0], 2u);
  for (void *window : group.windows)
    std::memset(window, 0, group.window_bytes);
  *group.status[0] = 0;
  size_t wrong = 0;
  simt::run_ranks(stream, 2, [&](uint32_t rank) {
    EXPECT_EQ(group.exchange(static_cast<int>(rank), 1, 2), ASSAY_OK);
    wrong += group.wrong(static_cast<int>(rank), 1, 2);
  });
  EXPECT_EQ(wrong, 0u);
  EXPECT_EQ(*group.status[0], 0u);
  expect_no_hazard(stream);
}

// Two groups of the same ranks, as two layers that run at once: with windows of their own they do
// not meet. A global workspace for both (TensorRT-LLM had one) is seen.
TEST(Exchange, two_groups_need_windows_of_their_own) {
  for (const bool shared : {false, true}) {
    simt::Stream stream;
    stream.schedule.order = Order::kSeeded;
    RankGroup first(stream, {2, 4, 4, 8, 4}), second(stream, {2, 4, 4, 8, 4});
    if (shared) second.windows = first.windows;
    size_t wrong = 0;
    // The ranks 2 and 3 are the ranks 0 and 1 in a second stream of theirs.
    simt::run_ranks(stream, 4, [&](uint32_t r) {
      RankGroup &group = r < 2 ? first : second;
      const int rank = static_cast<int>(r % 2);
      for (int call = 0; call < 3; ++call) {
        const int number = call + (r < 2 ? 0 : 50);
        if (group.exchange(rank, number, 4) != ASSAY_OK) return;
        wrong += group.wrong(rank, number, 4);
      }
    });
    const bool seen = wrong != 0 || !stream.hazards.empty();
    EXPECT_EQ(seen, shared);
  }
}

} // namespace
} // namespace assay
