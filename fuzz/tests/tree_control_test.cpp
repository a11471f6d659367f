// SPDX-License-Identifier: Apache-2.0
// Positive controls of the trees of fuzz_plan: one way each to be unsound, seen by its own check.
#include <gtest/gtest.h>

#include <algorithm>
#include <limits>

#include "fuzz/tests/seeds.h"
#include "fuzz/tree_checks.h"
#include "kernels/plan/tests/tree_audit.h"

namespace assay::fuzz {
namespace {

/// The first violation of `check` in the seeds that are trees.
template <class Check>
std::string of_trees(Check check) {
  return first_violation("fuzz_plan", [&](Input input) {
    ByteReader in(input);
    return in.byte() % 2 == 1 ? check(decode_tree_case(in)) : std::string();
  });
}

/// A sound tree, corrupted.
struct SpoiltTree {
  explicit SpoiltTree(const TreeCase &c)
      : shape(c.shape), host(c.input()), view(host.view()), n(host.num_items()),
        items(view.items, view.items + kMaxTreeItems + shape.blocks),
        coords(view.coords, view.coords + size_t{kTreeLevels} * shape.batch),
        members(view.members, view.members + size_t{kTreeLevels} * shape.batch),
        covered(host.covered(), host.covered() + shape.batch), lens(c.lens) {}

  int32_t keys_of(int32_t r) const { return lens[r] - (shape.q_len - 1); }

  const PrefixTreeShape &shape;
  HostTree host;
  PrefixTree view;
  int32_t n; // items with keys
  std::vector<TreeItem> items;
  std::vector<TreeCoord> coords;
  std::vector<int32_t> members, covered;
  const std::vector<int32_t> &lens;
};

template <class Spoil>
std::string tree(Spoil corrupt) {
  return of_trees([&](const TreeCase &c) {
    SpoiltTree t(c);
    corrupt(t);
    return tree_violation(c.input(), {t.items.data(), t.coords.data(), t.members.data()},
                          t.covered);
  });
}
template <class Spoil>
std::string tree_items(Spoil corrupt) {
  return tree([&](SpoiltTree &t) {
    for (int32_t i = 0; i < t.n; ++i)
      corrupt(t.items[i], t);
  });
}

/// Each is seen by the check that is meant to see it.
template <class Spoil>
void expect_tree(const char *words, Spoil corrupt) {
  const std::string found = tree(corrupt);
  EXPECT_NE(found.find(words), std::string::npos) << "expected " << words << ", got " << found;
}
template <class Spoil>
void expect_items(const char *words, Spoil corrupt) {
  const std::string found = tree_items(corrupt);
  EXPECT_NE(found.find(words), std::string::npos) << "expected " << words << ", got " << found;
}

TEST(TreeControl, sound_trees_pass) {
  EXPECT_EQ(tree([](SpoiltTree &) {}), "");
}
TEST(TreeControl, nothing_shared) {
  expect_tree("covers 0 keys", [](SpoiltTree &t) {
    std::ranges::fill(t.items, TreeItem{});
    std::ranges::fill(t.coords, TreeCoord{});
    std::ranges::fill(t.covered, 0);
  });
}
TEST(TreeControl, an_item_lost) {
  expect_tree("a state that nobody writes", [](SpoiltTree &t) {
    if (t.n > 0) t.items[t.n - 1] = {};
  });
}
TEST(TreeControl, no_end) {
  expect_tree("no end behind the last item", [](SpoiltTree &t) {
    if (t.shape.blocks > 1) t.items[t.n + 1] = t.items[0];
  });
}
TEST(TreeControl, an_item_too_many) {
  expect_tree("more items than a plan holds",
              [](SpoiltTree &t) { std::ranges::fill(t.items, t.items[0]); });
}
TEST(TreeControl, an_item_without_rows) {
  expect_items("no rows", [](TreeItem &i, SpoiltTree &) { i.first_row = i.rows; });
  expect_items("no rows", [](TreeItem &i, SpoiltTree &) { i.first_row = -1; });
}
TEST(TreeControl, a_node_ends_within_a_tile) {
  expect_tree("its own part starts within a tile", [](SpoiltTree &t) {
    for (int32_t i = 0; i < t.n; ++i)
      t.items[i].kv_end -= t.items[i].kv_end == t.covered[t.items[i].request];
    for (int32_t &keys : t.covered)
      keys -= keys > 0;
  });
}
TEST(TreeControl, an_item_starts_within_a_tile) {
  expect_items("keys start within a tile", [](TreeItem &i, SpoiltTree &) { i.kv_begin += 1; });
}
TEST(TreeControl, a_node_without_its_last_page) {
  expect_items("keys missing or computed twice", [](TreeItem &i, SpoiltTree &t) {
    if (i.kv_begin == 0 && t.covered[i.request] > i.kv_end) i.kv_end -= kStartKeys;
  });
}
TEST(TreeControl, a_page_that_not_all_have) {
  expect_items("keys that a request does not share", [](TreeItem &i, SpoiltTree &t) {
    if (i.kv_end == t.covered[0] && i.kv_end + kStartKeys <= t.keys_of(0)) i.kv_end += kStartKeys;
  });
}
TEST(TreeControl, keys_past_the_end) {
  expect_items("keys that its request does not have",
               [](TreeItem &i, SpoiltTree &) { i.kv_end += 1 << 20; });
}
/// The item contains no first row of a request.
TEST(TreeControl, keys_of_another_request_for_the_rows_of_one) {
  expect_items("keys that a request does not share", [](TreeItem &i, SpoiltTree &t) {
    const int32_t group = t.shape.query_rows, next = (i.first_row + group - 1) / group * group;
    if (next >= std::min(i.rows, i.first_row + kTreeRows)) i.request = t.shape.batch - 1;
  });
}
TEST(TreeControl, heads_out_of_range) {
  expect_items("a head out of range",
               [](TreeItem &i, SpoiltTree &t) { i.kv_head = t.shape.kv_heads; });
}
TEST(TreeControl, heads_of_another_item) {
  expect_items("a state where the merge does not look",
               [](TreeItem &i, SpoiltTree &) { i.kv_head = 0; });
}
TEST(TreeControl, one_state_for_all_items) {
  expect_items("a state written twice",
               [](TreeItem &i, SpoiltTree &t) { i.first_state = t.items[0].first_state; });
}
TEST(TreeControl, states_past_the_workspace) {
  expect_items("a state outside the workspace",
               [](TreeItem &i, SpoiltTree &t) { i.first_state += t.shape.max_rows; });
}
TEST(TreeControl, members_past_the_last) {
  expect_items("rows out of range", [](TreeItem &i, SpoiltTree &t) {
    i.first_member = kTreeLevels * t.shape.batch - 1;
  });
  expect_items("rows out of range", [](TreeItem &i, SpoiltTree &) {
    i.first_member = std::numeric_limits<int32_t>::max();
  });
}
TEST(TreeControl, a_row_of_nobody) {
  expect_items("rows out of range",
               [](TreeItem &i, SpoiltTree &t) { i.rows += t.shape.query_rows > 1; });
}
TEST(TreeControl, rows_lost_behind_the_first_tile) {
  expect_items("a state written twice", [](TreeItem &i, SpoiltTree &) { i.first_row = 0; });
}
TEST(TreeControl, a_split_too_many_is_merged) {
  expect_tree("a state that nobody writes", [](SpoiltTree &t) {
    for (TreeCoord &p : t.coords)
      if (p.splits > 0 && p.first_state == 0) p.splits += 1;
  });
}
TEST(TreeControl, splits_without_end) {
  expect_tree("splits out of range",
              [](SpoiltTree &t) { t.coords[0].splits = std::numeric_limits<int32_t>::max(); });
}
TEST(TreeControl, a_place_out_of_range) {
  expect_tree("coordinates out of range", [](SpoiltTree &t) { t.coords[0].rows = 0; });
  expect_tree("coordinates out of range", [](SpoiltTree &t) { t.coords[0].first_state = -1; });
}
TEST(TreeControl, a_place_past_the_workspace) {
  expect_tree("coordinates outside the workspace",
              [](SpoiltTree &t) { t.coords[0].first_state = t.shape.max_rows; });
}
TEST(TreeControl, a_place_behind_an_empty_one) {
  expect_tree("a state where the merge does not look", [](SpoiltTree &t) {
    t.coords[1] = t.coords[0];
    t.coords[0] = {};
  });
}
TEST(TreeControl, states_merged_twice) {
  expect_tree("merged twice", [](SpoiltTree &t) { t.coords[1] = t.coords[0]; });
}
TEST(TreeControl, states_of_another_request_merged) {
  expect_tree("merged twice", [](SpoiltTree &t) {
    for (int32_t r = 0; r < t.shape.batch; ++r)
      if (t.covered[r] == 0) t.coords[size_t{kTreeLevels} * r] = t.coords[0];
  });
}
TEST(TreeControl, own_keys_begin_early) {
  expect_tree("does not begin where its nodes end", [](SpoiltTree &t) { t.covered[0] = 0; });
}
TEST(TreeControl, one_split_whatever_was_asked_for) {
  const std::string found = of_trees([&](const TreeCase &c) {
    TreeCase one = c;
    one.shape.splits = std::min(c.shape.splits, 1);
    const HostTree host(one.input());
    return tree_violation(c.input(), host.view(),
                          {host.covered(), static_cast<size_t>(c.shape.batch)});
  });
  EXPECT_NE(found.find("splits at level"), std::string::npos) << found;
}
TEST(TreeControl, a_tree_that_the_device_does_not_plan) {
  EXPECT_NE(of_trees([](const TreeCase &c) -> std::string {
              TreeCase other = c;
              other.lens[0] /= 2;
              return tree_difference(c, HostTree(other.input()));
            }),
            "");
}

} // namespace
} // namespace assay::fuzz
