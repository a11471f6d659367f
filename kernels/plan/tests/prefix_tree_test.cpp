// SPDX-License-Identifier: Apache-2.0
// Prefix trees: the device's is the host's byte for byte, and every key is computed once.
#include "kernels/plan/host_tree.h"
#include "kernels/plan/tests/tree_audit.h"
#include "kernels/plan/tree_kernel.cuh"
#include "kernels/simt/launch.h"

#include <gtest/gtest.h>

#include <cstring>
#include <random>

namespace assay {
namespace {

/// Requests as leaves of a random tree of pages.
struct Requests {
  std::vector<int32_t> table, lens;
  int32_t columns;

  TreeInput input(const PrefixTreeShape &shape) const {
    return {shape, table.data(), lens.data(), columns, nullptr};
  }
};

Requests draw(std::mt19937 &rng, const PrefixTreeShape &s, int longest) {
  Requests out;
  out.columns = longest;
  int32_t fresh = 0;
  for (int r = 0; r < s.batch; ++r) {
    const int pages = static_cast<int>(rng() % (longest + 1));
    std::vector<int32_t> row(longest, -7); // behind the live part: anything
    const int like = r > 0 && rng() % 4 != 0 ? static_cast<int>(rng() % r) : -1;
    const int others = like < 0 ? 0 : out.lens[like] / s.page_size;
    const int shared = others == 0 ? 0 : static_cast<int>(rng() % (std::min(others, pages) + 1));
    for (int p = 0; p < pages; ++p)
      row[p] = p < shared ? out.table[like * longest + p] : fresh++;
    out.table.insert(out.table.end(), row.begin(), row.end());
    out.lens.push_back(pages * s.page_size - (pages > 0 && rng() % 2 ? rng() % s.page_size : 0));
  }
  return out;
}

PrefixTreeShape draw_shape(std::mt19937 &rng) {
  PrefixTreeShape s;
  s.batch = 2 + static_cast<int>(rng() % 40);
  s.q_len = rng() % 2 ? 1 : 1 + static_cast<int>(rng() % 8);
  s.query_rows = s.q_len * (1 + static_cast<int>(rng() % 9));
  s.kv_heads = 1 + static_cast<int>(rng() % 3);
  s.head_dim = 128;
  s.kv_bytes = 1 + static_cast<int>(rng() % 2);
  s.page_size = std::array{1, 16, 48, 64, 128}[rng() % 5];
  s.tile = 128;
  s.blocks = 4;
  s.splits = std::array{0, 1, 1, 2, 7}[rng() % 5];
  s.max_rows = rng() % 6 == 0 ? 40 : 100'000;
  return s;
}

std::string violation(const PrefixTreeShape &s, const Requests &in, const HostTree &tree) {
  return tree_violation(in.input(s), tree.view(), {tree.covered(), static_cast<size_t>(s.batch)});
}

TEST(PrefixTree, computes_every_key_of_a_node_once_for_all_who_share_it) {
  std::mt19937 rng(11);
  int64_t items = 0;
  for (int i = 0; i < 400; ++i) {
    const PrefixTreeShape shape = draw_shape(rng);
    const Requests in = draw(rng, shape, 40);
    const HostTree tree(in.input(shape));
    ASSERT_EQ(violation(shape, in, tree), "") << "case " << i;
    items += tree.num_items();
  }
  EXPECT_GT(items, 3000);
}

TEST(PrefixTree, finds_a_prefix_of_all_and_the_ones_of_groups_below_it) {
  PrefixTreeShape s{8, 4, 1, 2, 128, 2, 16, 128, 132, 1, 1 << 20};
  Requests in;
  in.columns = 40;
  for (int r = 0; r < 8; ++r) {
    in.lens.push_back(600);
    for (int p = 0; p < 40; ++p) // 128 keys of all, 256 more of every second request
      in.table.push_back(p < 8 ? p : p < 24 ? 100 * (r % 2 + 1) + p : 1000 * (r + 1) + p);
  }
  const HostTree tree(in.input(s));
  const PrefixTree view = tree.view();
  ASSERT_EQ(tree.num_items(), 3 * 2);
  EXPECT_EQ(view.items[0].rows, 32);
  EXPECT_EQ(view.items[0].kv_end, 128);
  EXPECT_EQ(view.items[2].rows, 16);
  EXPECT_EQ(view.items[2].kv_begin, 128);
  EXPECT_EQ(view.items[2].kv_end, 384);
  for (int r = 0; r < 8; ++r) {
    EXPECT_EQ(tree.covered()[r], 384);
    EXPECT_EQ(view.coords[r * kTreeLevels + 1].splits, 1);
    EXPECT_EQ(view.coords[r * kTreeLevels + 2].splits, 0);
  }
}

TEST(PrefixTree, gives_keys_to_the_nodes_below_where_a_node_of_their_own_does_not_pay) {
  // 64 keys of 200 requests in two groups that share 8,192 more: only one more read is saved.
  PrefixTreeShape s{200, 4, 1, 8, 128, 2, 64, 128, 132, 0, 1 << 20};
  Requests in;
  in.columns = 130;
  for (int r = 0; r < 200; ++r) {
    in.lens.push_back(130 * 64);
    for (int p = 0; p < 130; ++p)
      in.table.push_back(p == 0 ? 0 : p < 129 ? 1000 * (r % 2 + 1) + p : 10000 + r);
  }
  const HostTree tree(in.input(s));
  EXPECT_EQ(tree.view().items[0].kv_begin, 0);
  EXPECT_EQ(tree.view().coords[0].rows, 400);
  EXPECT_EQ(tree.covered()[0], 129 * 64);
  EXPECT_EQ(tree.view().coords[1].splits, 0);
}

TEST(PrefixTree, shares_nothing_where_that_gains_less_than_a_kernel_costs) {
  PrefixTreeShape s{4, 4, 1, 8, 128, 2, 16, 128, 132, 0, 1 << 20};
  Requests in;
  in.columns = 20;
  for (int r = 0; r < 4; ++r) {
    in.lens.push_back(320);
    for (int p = 0; p < 20; ++p)
      in.table.push_back(p < 16 ? p : 100 * (r + 1) + p);
  }
  EXPECT_EQ(HostTree(in.input(s)).num_items(), 0);
  EXPECT_EQ(HostTree(in.input(s)).covered()[0], 0);
  s.splits = 1;
  EXPECT_GT(HostTree(in.input(s)).num_items(), 0);
}

TEST(PrefixTree, leaves_keys_that_some_query_token_does_not_see_to_their_request) {
  // Three requests begin with the same 256 keys, all that they have; page 3 has 192 .. 255.
  PrefixTreeShape s{3, 8, 8, 1, 64, 2, 64, 128, 4, 1, 1 << 10};
  Requests in;
  in.columns = 4;
  in.table = {1, 2, 3, 4, 1, 2, 3, 4, 1, 2, 3, 4};
  const auto covered = [&](std::vector<int32_t> lens, int32_t q_len) {
    in.lens = std::move(lens);
    s.q_len = q_len;
    const HostTree tree(in.input(s));
    EXPECT_EQ(violation(s, in, tree), "");
    return std::vector<int32_t>(tree.covered(), tree.covered() + s.batch);
  };
  using Keys = std::vector<int32_t>;
  EXPECT_EQ(covered({256, 256, 256}, 1), (Keys{256, 256, 256}));
  EXPECT_EQ(covered({256, 256, 256}, 2), (Keys{192, 192, 192}));
  EXPECT_EQ(covered({199, 198, 256}, 8), (Keys{192, 128, 192}));
  // A request with fewer tokens than it is asked about shares nothing.
  EXPECT_EQ(covered({7, 256, 0}, 8), (Keys{0, 0, 0}));
  EXPECT_EQ(covered({7, 256, 72}, 8), (Keys{0, 64, 64}));
}

TEST(PrefixTree, cuts_no_finer_than_a_plan_holds_items) {
  // 64 pairs share 16 tiles each: 8,192 items if all are cut.
  PrefixTreeShape s{128, 1, 1, 8, 64, 2, 128, 128, 132, 16, 1 << 20};
  Requests in;
  in.columns = 16;
  in.lens.assign(128, 16 * 128);
  for (int r = 0; r < 128; ++r)
    for (int p = 0; p < 16; ++p)
      in.table.push_back(r / 2 * 16 + p);
  for (const int splits : {0, 16}) {
    s.splits = splits;
    const HostTree tree(in.input(s));
    EXPECT_GE(tree.num_items(), 64 * 8);
    EXPECT_LE(tree.num_items(), kMaxTreeItems);
    EXPECT_EQ(tree.covered()[127], 16 * 128);
  }
}

TEST(PrefixTree, tells_a_page_at_two_places_apart) {
  // Two groups of two; the page behind what the first shares lies one page further on in the
  // second.
  PrefixTreeShape s{4, 1, 1, 1, 64, 2, 64, 128, 4, 1, 1 << 10};
  Requests in;
  in.columns = 5;
  in.table = {1, 2, 9, 11, 11, 5, 6, 7, 9, 12, 1, 2, 9, 13, 13, 5, 6, 7, 9, 14};
  in.lens = {250, 310, 250, 310};
  const HostTree tree(in.input(s));
  ASSERT_EQ(violation(s, in, tree), "");
  EXPECT_EQ(tree.covered()[0], 192);
  EXPECT_EQ(tree.covered()[1], 256);
}

constexpr int kThreads = 64;

TEST(TreeKernel, equals_the_host_finder_byte_for_byte) {
  std::mt19937 rng(6);
  for (int i = 0; i < 40; ++i) {
    const PrefixTreeShape shape = draw_shape(rng);
    const Requests in = draw(rng, shape, i % 4 == 0 ? 300 : 30);
    const HostTree host(in.input(shape));
    simt::Stream stream;
    const auto read_only = [&](const std::vector<int32_t> &v, const char *name) {
      auto *p = static_cast<int32_t *>(stream.memory.allocate(std::max<size_t>(v.size(), 1) * 4,
                                                              simt::Access::kReadOnly,
                                                              simt::InitState::kDefined, name));
      std::copy(v.begin(), v.end(), p);
      return p;
    };
    const PrefixTreeLayout layout = prefix_tree_layout(shape);
    auto *plan = static_cast<char *>(stream.memory.allocate(layout.bytes, simt::Access::kReadWrite,
                                                            simt::InitState::kUndefined, "plan"));
    n_simt::TreeKernelParams params;
    params.input = {shape, read_only(in.table, "page_table"), read_only(in.lens, "seq_lens"),
                    in.columns, nullptr};
    params.output = tree_output(shape, plan);
    stream.schedule.order = i % 2 ? simt::Order::kSeeded : simt::Order::kDescending;
    stream.schedule.seed = i;
    simt::LaunchConfig config;
    config.block = kThreads;
    config.shared_bytes = sizeof(TreeScratch);
    ASSERT_EQ(simt::launch(&stream, config, [&] { n_simt::tree_kernel<kThreads>(params); }),
              simt::LaunchStatus::kOk)
        << stream.hazards.back().message;
    const PrefixTree view = host.view();
    const auto same = [](const void *a, const void *b, size_t bytes) {
      return std::memcmp(a, b, bytes) == 0;
    };
    ASSERT_TRUE(same(params.output.items, view.items,
                     (host.num_items() + shape.blocks) * sizeof(TreeItem)));
    ASSERT_TRUE(
        same(params.output.coords, view.coords, shape.batch * kTreeLevels * sizeof(TreeCoord)));
    ASSERT_TRUE(same(params.output.covered, host.covered(), shape.batch * 4));
    for (int item = 0; item < host.num_items(); ++item)
      for (int m = 0; m < view.items[item].rows / shape.query_rows; ++m)
        ASSERT_EQ(params.output.members[view.items[item].first_member + m],
                  view.members[view.items[item].first_member + m]);
  }
}

} // namespace
} // namespace assay
