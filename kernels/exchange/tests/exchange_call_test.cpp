// SPDX-License-Identifier: Apache-2.0
// Arguments of exchange_states: each is refused by name, with its limit.
#include "kernels/exchange/exchange_call.h"
#include "kernels/exchange/tests/ranks_fixture.h"

#include <functional>
#include <random>
#include <string>

namespace assay {
namespace {

class ExchangeArguments : public testing::Test {
protected:
  simt::Stream stream;
  RankGroup group{stream, {2, 4, 6, 64, 8}};

  void refuses(assay_status status, const std::string &text,
               const std::function<void(assay_exchange_params &)> &change) {
    assay_exchange_params p = group.params(1);
    change(p);
    for (const auto entry : {&assay_exchange_states_supports, &assay_exchange_states}) {
      EXPECT_EQ(entry(&p), status) << text;
      EXPECT_NE(std::string(assay_last_error()).find(text), std::string::npos)
          << assay_last_error();
    }
  }
};

TEST_F(ExchangeArguments, right_ones_pass) {
  const assay_exchange_params p = group.params(1);
  EXPECT_EQ(assay_exchange_states_supports(&p), ASSAY_OK) << assay_last_error();
}

TEST_F(ExchangeArguments, sizes) {
  using P = assay_exchange_params;
  refuses(ASSAY_INVALID_ARGUMENT, "struct_size", [](P &p) { p.struct_size = 8; });
  refuses(ASSAY_UNSUPPORTED, "dtype is 3", [](P &p) { p.dtype = ASSAY_E4M3; });
  refuses(ASSAY_INVALID_ARGUMENT, "lse_base", [](P &p) { p.lse_base = 2; });
  refuses(ASSAY_INVALID_ARGUMENT, "heads is 2", [](P &p) { p.heads = 2; });
  refuses(ASSAY_INVALID_ARGUMENT, "num_ranks is 0", [](P &p) { p.num_ranks = 0; });
  refuses(ASSAY_INVALID_ARGUMENT, "num_ranks is 9", [](P &p) { p.num_ranks = 9; });
  refuses(ASSAY_INVALID_ARGUMENT, "rank is 2", [](P &p) { p.rank = 2; });
  refuses(ASSAY_INVALID_ARGUMENT, "rank is -1", [](P &p) { p.rank = -1; });
  refuses(ASSAY_INVALID_ARGUMENT, "num_rows is 9", [](P &p) { p.num_rows = 9; });
  refuses(ASSAY_INVALID_ARGUMENT, "num_rows is -1", [](P &p) { p.num_rows = -1; });
  refuses(ASSAY_INVALID_ARGUMENT, "max_rows is 0", [](P &p) { p.max_rows = 0; });
  refuses(ASSAY_INVALID_ARGUMENT, "num_heads is 0", [](P &p) { p.num_heads = 0; });
  refuses(ASSAY_UNSUPPORTED, "head_dim is 60", [](P &p) { p.head_dim = 60; });
  refuses(ASSAY_INVALID_ARGUMENT, "head_dim is 520", [](P &p) { p.head_dim = 520; });
  refuses(ASSAY_INVALID_ARGUMENT, "enable_pdl", [](P &p) { p.enable_pdl = 2; });
  refuses(ASSAY_INVALID_ARGUMENT, "timeout_ns is 0", [](P &p) { p.timeout_ns = 0; });
  refuses(ASSAY_CAPACITY_EXCEEDED, "max_rows * num_heads", [](P &p) {
    p.max_rows = 1 << 30;
    p.num_heads = 4;
  });
}

TEST_F(ExchangeArguments, tensors) {
  using P = assay_exchange_params;
  refuses(ASSAY_INVALID_ARGUMENT, "o_in is null", [](P &p) { p.o_in = nullptr; });
  refuses(ASSAY_INVALID_ARGUMENT, "lse_in is null", [](P &p) { p.lse_in = nullptr; });
  refuses(ASSAY_INVALID_ARGUMENT, "out is null", [](P &p) { p.out = nullptr; });
  refuses(ASSAY_INVALID_ARGUMENT, "status is null", [](P &p) { p.status = nullptr; });
  refuses(ASSAY_INVALID_ARGUMENT, "o_in_stride_row", [](P &p) { p.o_in_stride_row = 4; });
  refuses(ASSAY_INVALID_ARGUMENT, "lse_in_stride_head", [](P &p) { p.lse_in_stride_head = -1; });
  refuses(ASSAY_INVALID_ARGUMENT, "out_stride_head", [](P &p) { p.out_stride_head = 8; });
  refuses(ASSAY_INVALID_ARGUMENT, "lse_stride_row", [](P &p) { p.lse_stride_row = 0; });
  refuses(ASSAY_INVALID_ARGUMENT, "o_in", [](P &p) { p.out = const_cast<void *>(p.o_in); });
  refuses(ASSAY_INVALID_ARGUMENT, "lse_in", [](P &p) { p.lse = const_cast<float *>(p.lse_in); });
}

TEST_F(ExchangeArguments, windows) {
  using P = assay_exchange_params;
  std::vector<void *> windows = group.windows;
  refuses(ASSAY_INVALID_ARGUMENT, "windows is null", [](P &p) { p.windows = nullptr; });
  refuses(ASSAY_WORKSPACE_TOO_SMALL, std::to_string(group.window_bytes),
          [](P &p) { --p.window_bytes; });
  windows[0] = nullptr;
  refuses(ASSAY_INVALID_ARGUMENT, "windows[0] is null", [&](P &p) { p.windows = windows.data(); });
  windows[0] = static_cast<char *>(group.windows[0]) + 128;
  refuses(ASSAY_INVALID_ARGUMENT, "windows[0] is not aligned",
          [&](P &p) { p.windows = windows.data(); });
  windows[0] = windows[1];
  refuses(ASSAY_INVALID_ARGUMENT, "windows[0] and windows[1] are one",
          [&](P &p) { p.windows = windows.data(); });
  windows[0] = reinterpret_cast<void *>(~uintptr_t{255});
  refuses(ASSAY_INVALID_ARGUMENT, "to the last address", [&](P &p) { p.windows = windows.data(); });
}

TEST_F(ExchangeArguments, window_size_looks_at_sizes_alone) {
  assay_exchange_params p = group.params(0);
  p.out = nullptr;
  p.windows = nullptr;
  p.num_rows = -7;
  uint64_t bytes = 0;
  EXPECT_EQ(assay_exchange_states_window_size(&p, &bytes), ASSAY_OK) << assay_last_error();
  EXPECT_EQ(bytes, group.window_bytes);
  EXPECT_EQ(assay_exchange_states_window_size(&p, nullptr), ASSAY_INVALID_ARGUMENT);
  p.max_rows = 0;
  EXPECT_EQ(assay_exchange_states_window_size(&p, &bytes), ASSAY_INVALID_ARGUMENT);
}

TEST_F(ExchangeArguments, no_rows_launch_nothing) {
  assay_exchange_params p = group.params(0);
  p.num_rows = 0;
  p.out = nullptr;
  p.o_in = nullptr;
  EXPECT_EQ(assay_exchange_states(&p), ASSAY_OK) << assay_last_error();
  EXPECT_EQ(stream.counters.launches, 0u);
}

// 64 heads of 128, two ranks: what a call of 256 rows needs, and what one row needs.
TEST_F(ExchangeArguments, window_bytes) {
  assay_exchange_params p = group.params(0);
  p.dtype = ASSAY_BF16;
  p.num_heads = 64;
  p.head_dim = 128;
  uint64_t small = 0, large = 0;
  p.max_rows = 1;
  ASSERT_EQ(assay_exchange_states_window_size(&p, &small), ASSAY_OK);
  p.max_rows = 256;
  ASSERT_EQ(assay_exchange_states_window_size(&p, &large), ASSAY_OK);
  // Two halves of 32 states a row from each of two ranks, 22 packets a state, and the epochs. A
  // worker has one state, or two.
  EXPECT_EQ(small, 128u + 2 * 2 * 32 * 22 * 16u);
  EXPECT_EQ(large, 16384u + 2 * 2 * 4096 * 2 * 22 * 16u);
}

// No call is made, and no memory holds the largest windows: areas lie side by side, each is as
// large as what its worker writes at most, and the last one ends with the window.
TEST(ExchangeLayout, areas_fill_a_window_of_any_size) {
  std::mt19937_64 random(1);
  const auto upto = [&](int64_t most) { return static_cast<int64_t>(random() % most) + 1; };
  int beyond_4_gib = 0;
  for (int draw = 0; draw < 3'000; ++draw) {
    assay_exchange_params p{};
    p.struct_size = sizeof p;
    p.target = ASSAY_TARGET_SIMT;
    p.dtype = draw % 2 == 0 ? ASSAY_BF16 : ASSAY_FP32;
    p.heads = draw % 3 == 0 ? ASSAY_EXCHANGE_ALL : ASSAY_EXCHANGE_SCATTER;
    p.num_ranks = static_cast<int32_t>(upto(8));
    p.head_dim = static_cast<int32_t>(8 * upto(64));
    p.num_heads = static_cast<int32_t>(int64_t{1} << (random() % 21));
    p.max_rows =
        static_cast<int32_t>(upto(draw % 4 == 0 ? (int64_t{1} << 31) / p.num_heads - 1 : 512));
    uint64_t bytes = 0;
    if (p.max_rows < 1) continue;
    ASSERT_EQ(assay_exchange_states_window_size(&p, &bytes), ASSAY_OK) << assay_last_error();
    const ExchangeWindow w = ExchangeStates::window_of(p);
    ASSERT_EQ(static_cast<uint64_t>(w.bytes()), bytes);
    ASSERT_GE(w.packets_at(), 4 * int64_t{w.workers});
    const int64_t area = int64_t{w.packets} * kPacketBytes;
    int64_t next = w.packets_at();
    for (uint32_t half = 0; half < 2; ++half)
      for (int rank = 0; rank < w.num_ranks; ++rank) {
        for (int worker : {0, w.workers / 2, w.workers - 1})
          ASSERT_EQ(w.area_at(half, rank, worker), next + worker * area) << draw;
        next += w.workers * area;
      }
    ASSERT_EQ(next, w.bytes()) << draw;
    beyond_4_gib += w.bytes() > int64_t{1} << 32;
  }
  EXPECT_GT(beyond_4_gib, 100);
}

} // namespace
} // namespace assay
