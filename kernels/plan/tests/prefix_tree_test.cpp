// SPDX-License-Identifier: Apache-2.0
// Prefix trees: every key is computed once.
#include "kernels/plan/tests/drawn_tree.h"

#include <gtest/gtest.h>

namespace assay {
namespace {

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
    EXPECT_EQ(view.members[r], r);
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

TEST(PrefixTree, cuts_a_node_into_parts_that_differ_by_a_tile) {
  PrefixTreeShape s{2, 4, 1, 1, 64, 2, 128, 128, 132, 7, 1 << 10};
  Requests in;
  in.columns = 16;
  in.lens.assign(2, 16 * 128);
  for (int i = 0; i < 32; ++i)
    in.table.push_back(i % 16);
  const HostTree tree(in.input(s));
  ASSERT_EQ(tree.num_items(), 6); // of three tiles at most
  for (int i = 0; i < 6; ++i) {
    const TreeItem &item = tree.view().items[i];
    const int32_t tiles = (item.kv_end - item.kv_begin) / s.tile;
    EXPECT_TRUE(tiles == 2 || tiles == 3) << tiles << " tiles in item " << i;
  }
}

TEST(PrefixTree, tells_pages_apart_by_all_their_bits) {
  for (const int64_t bit : {8, 16, 22, 30}) {
    PrefixTreeShape s{4, 1, 1, 1, 64, 2, 64, 128, 4, 1, 1 << 10};
    const auto far = static_cast<int32_t>(5 + (int64_t{1} << bit));
    Requests in;
    in.columns = 3;
    in.table = {1, 5, 7, 1, far, 7, 1, far, 7, 1, 5, 7};
    in.lens = {192, 192, 192, 192};
    const HostTree tree(in.input(s));
    ASSERT_EQ(violation(s, in, tree), "");
    EXPECT_EQ(tree.view().coords[0].rows, 4);
    EXPECT_EQ(tree.view().coords[1].rows, 2);
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

} // namespace
} // namespace assay
