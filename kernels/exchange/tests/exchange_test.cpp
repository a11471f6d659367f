// SPDX-License-Identifier: Apache-2.0
// What a single case of the harness does not have: many calls on the same windows, two groups, a
// peer that is dead or late.
#include <algorithm>
#include <random>

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

/// As if every worker had been through `epochs` times.
void set_epochs(const RankGroup &group, uint32_t epochs) {
  for (void *window : group.windows)
    std::fill_n(static_cast<uint32_t *>(window), 32, epochs);
}

/// Calls first .. first + calls - 1 of every rank, all right.
void expect_right(simt::Stream &stream, RankGroup &group, int ranks, int calls, int rows,
                  int first = 0) {
  size_t wrong = 0;
  simt::run_ranks(stream, static_cast<uint32_t>(ranks), [&](uint32_t r) {
    const int rank = static_cast<int>(r);
    for (int call = first; call < first + calls; ++call) {
      EXPECT_EQ(group.exchange(rank, call, rows), ASSAY_OK) << assay_last_error();
      wrong += group.wrong(rank, call, rows);
    }
  });
  EXPECT_EQ(wrong, 0u);
  expect_no_hazard(stream);
}

/// merge_states of all ranks' states of a group, dense.
std::vector<float> merged_on_one(simt::Stream &stream, const RankGroup &group, int ranks, int rows,
                                 int heads, int dims) {
  const size_t row = static_cast<size_t>(heads) * dims;
  std::vector<float> o_in(rows * ranks * row), lse_in(rows * ranks * heads), o(rows * row);
  for (int i = 0; i < rows; ++i)
    for (int r = 0; r < ranks; ++r) {
      std::copy_n(group.o_in[r] + i * row, row, o_in.begin() + (i * ranks + r) * row);
      std::copy_n(group.lse_in[r] + i * heads, heads, lse_in.begin() + (i * ranks + r) * heads);
    }
  assay_merge_states_params p{};
  p.struct_size = sizeof p;
  p.target = ASSAY_TARGET_SIMT;
  p.dtype = ASSAY_FP32;
  p.lse_base = ASSAY_LSE_BASE_2;
  p.num_rows = rows;
  p.num_states = ranks;
  p.num_heads = heads;
  p.head_dim = dims;
  p.o_in = o_in.data();
  p.lse_in = lse_in.data();
  p.out = o.data();
  p.o_in_stride_state = p.out_stride_row = static_cast<int64_t>(row);
  p.o_in_stride_head = p.out_stride_head = dims;
  p.lse_in_stride_state = p.lse_stride_row = heads;
  p.lse_in_stride_head = p.lse_stride_head = 1;
  simt::Stream own;
  own.strict_global = false;
  own.schedule = stream.schedule;
  p.stream = &own;
  EXPECT_EQ(assay_merge_states(&p), ASSAY_OK) << assay_last_error();
  return o;
}

// Numbers whose sums depend on their order: every rank adds in that of merge_states.
TEST(Exchange, has_the_bits_of_merge_states) {
  constexpr int kRows = 6, kHeads = 5, kDims = 40;
  for (const int ranks : {2, 3, 8}) {
    simt::Stream stream;
    RankGroup group(stream, {ranks, kRows, kHeads, kDims, kRows, ASSAY_EXCHANGE_ALL});
    std::mt19937 random(7);
    for (int r = 0; r < ranks; ++r) {
      for (size_t i = 0; i < group.states() * kDims; ++i)
        group.o_in[r][i] = std::ldexp(static_cast<float>(random()), -31) - 1.0f;
      for (size_t i = 0; i < group.states(); ++i)
        group.lse_in[r][i] = std::ldexp(static_cast<float>(random()), -30);
    }
    simt::run_ranks(stream, static_cast<uint32_t>(ranks), [&](uint32_t rank) {
      const assay_exchange_params p = group.params(static_cast<int>(rank));
      EXPECT_EQ(assay_exchange_states(&p), ASSAY_OK) << assay_last_error();
    });
    const std::vector<float> one = merged_on_one(stream, group, ranks, kRows, kHeads, kDims);
    for (int r = 0; r < ranks; ++r)
      EXPECT_EQ(std::memcmp(group.o[r], one.data(), one.size() * sizeof(float)), 0) << r;
    expect_no_hazard(stream);
  }
}

// A window that has seen 2^32 - 3 calls. No place was written: its epoch, 0, is skipped.
TEST(Exchange, epochs_wrap) {
  simt::Stream stream;
  RankGroup group(stream, {2, 3, 4, 8, 9});
  set_epochs(group, 0xfffffffd);
  expect_right(stream, group, 2, 5, 3);
}

// Two rows of epochs 5 and 6, eight states of one worker; then one row, for 2^32 calls. The packets
// of the second row must not be there when their numbers come again.
TEST(Exchange, no_packet_stays_until_its_number_comes_again) {
  simt::Stream stream;
  RankGroup group(stream, {2, 2, 4, 8, 2, ASSAY_EXCHANGE_ALL});
  set_epochs(group, 4);
  expect_right(stream, group, 2, 2, 2);
  set_epochs(group, (1 << 16) - 5);
  expect_right(stream, group, 2, 8, 1);
  set_epochs(group, 4);
  expect_right(stream, group, 2, 2, 2, 7);
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
