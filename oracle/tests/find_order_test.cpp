// SPDX-License-Identifier: Apache-2.0
// Orders found by themselves: they are named, a mistake that only they show is found, and a kernel
// that is right in an order of its own is never accused.
#include <gtest/gtest.h>

#include <cstring>

#include "oracle/judge/arrays.h"
#include "oracle/judge/judge.h"
#include "oracle/judge/order_search.h"
#include "oracle/tests/ordered_call.h"

namespace assay::oracle::test {
namespace {

/// A call whose kernel has a known order.
OrderedCall call_by(const OrderRule &rule, std::vector<int32_t> lengths, int heads = 8,
                    int queries = 1) {
  OrderedCall call;
  call.lengths = std::move(lengths);
  call.heads = heads;
  call.queries = queries;
  call.emulation.tile = rule.tile;
  call.emulation.states = rule.states;
  call.order = [rule](int, int, const ListRange &range) { return order_of(rule, range); };
  std::mt19937_64 random(1);
  call.draw(random);
  return call;
}

/// What is said of a head without an order.
Report by_t0(const OrderedCall &call, int row, int head) {
  return judge_one(rows_of(call.params()), {call.o.data(), nullptr},
                   {.arithmetic = call.arithmetic}, row, head);
}

/// Loses a key in one head, such that it is just inside without an order.
void lose_a_key(OrderedCall &call, int row, int head) {
  for (int key = 100; key < call.end_of(row); ++key) {
    call.run_head(row, head, {.input = lost(key, 1)});
    const Report report = by_t0(call, row, head);
    if (report.verdict == Verdict::kInside && report.worst_ratio_row > 0.6) return;
  }
  FAIL() << "no such key";
}

TEST(FindOrder, TheOrderOfAKernelIsNamed) {
  const struct {
    OrderRule rule;
    const char *words;
  } cases[] = {
      {{.tile = 64}, "tiles of 64, 1 split, forwards"},
      {{.tile = 64, .backwards = true}, "tiles of 64, 1 split, backwards"},
      {{.tile = 128, .backwards = true, .parts = 4}, "tiles of 128, 4 splits, backwards"},
      {{.tile = 32, .parts = 3}, "tiles of 32, 3 splits, forwards"},
      {{.tile = 96, .backwards = true, .parts = 2}, "tiles of 96, 2 splits, backwards"},
      {{.tile = 32, .parts = 4, .in_turn = true}, "tiles of 32, 4 splits in turn, forwards"},
      {{.tile = 32, .states = 4}, "tiles of 32, 1 split, 4 states, forwards"},
  };
  for (const auto &[rule, words] : cases) {
    OrderedCall call = call_by(rule, {1000});
    call.run();
    const assay_judge_report report = call.judge();
    EXPECT_EQ(report.verdict, ASSAY_JUDGE_INSIDE) << words;
    EXPECT_EQ(report.order.state, ASSAY_JUDGE_ORDER_FOUND) << words;
    EXPECT_EQ(std::string(report.order.words).substr(0, std::strlen(words)), words);
    EXPECT_EQ(report.order.explained, report.order.pairs) << words;
    EXPECT_EQ(report.order.pairs, 8u) << words;
    EXPECT_EQ(report.order.tile, rule.tile) << words;
    EXPECT_EQ(report.order.backwards, rule.backwards) << words;
    EXPECT_EQ(report.order.states, rule.states) << words;
  }
}

TEST(FindOrder, AMistakeInOneHeadIsFoundThatT0Allows) {
  const OrderRule rule{.tile = 128, .backwards = true, .parts = 4};
  OrderedCall call = call_by(rule, {1024, 1024});
  call.run();
  lose_a_key(call, 1, 5);
  const assay_judge_report report = call.judge();
  EXPECT_EQ(report.verdict, ASSAY_JUDGE_INSIDE); // an order that nobody knows may explain it
  EXPECT_EQ(report.findings, 0u);
  EXPECT_EQ(report.order.doubts, 1u);
  EXPECT_EQ(report.order.explained, 15u);
  EXPECT_EQ(report.order.doubt_row, 1);
  EXPECT_EQ(report.order.doubt_head, 5);
  EXPECT_GT(report.order.doubt_ratio, 1.0);
  EXPECT_NE(std::string(report.order.words).find("; no known order explains row 1 head 5 ("),
            std::string::npos)
      << report.order.words;
}

// The first heads, which a search looks at first, are the mistaken ones.
TEST(FindOrder, AMistakeInTheSampleDoesNotHideTheOrder) {
  const OrderRule rule{.tile = 64, .backwards = true, .parts = 2};
  OrderedCall call = call_by(rule, {900}, 24);
  call.run();
  lose_a_key(call, 0, 0);
  const assay_judge_report report = call.judge();
  EXPECT_EQ(report.order.state, ASSAY_JUDGE_ORDER_FOUND);
  EXPECT_EQ(report.order.explained, 23u);
  EXPECT_EQ(report.order.doubts, 1u);
  EXPECT_EQ(report.order.doubt_head, 0);
}

TEST(FindOrder, RowsOfOtherLengthsMayBeCutOtherwise) {
  OrderedCall call = call_by({.tile = 64}, {200, 1200, 700, 330, 950, 1100});
  // A kernel that splits long requests, each by its length.
  call.order = [](int, int, const ListRange &range) {
    return order_of({.tile = 64, .backwards = true, .parts = 1 + range.length / 300}, range);
  };
  call.run();
  assay_judge_report report = call.judge();
  EXPECT_EQ(report.verdict, ASSAY_JUDGE_INSIDE);
  EXPECT_EQ(report.order.state, ASSAY_JUDGE_ORDER_FOUND);
  EXPECT_EQ(report.order.explained, 48u);
  lose_a_key(call, 4, 3);
  report = call.judge();
  EXPECT_EQ(report.order.doubts, 1u);
  EXPECT_EQ(report.order.doubt_row, 4);
}

TEST(FindOrder, TilesAndSplitsOfSeveralTokensAreThoseOfTheList) {
  const OrderRule rule{.tile = 64, .backwards = true, .parts = 3};
  OrderedCall call = call_by(rule, {769, 900}, 8, 5);
  call.run();
  const assay_judge_report report = call.judge();
  EXPECT_EQ(report.order.state, ASSAY_JUDGE_ORDER_FOUND);
  EXPECT_EQ(report.order.pairs, 80u);
  EXPECT_EQ(report.order.explained, 80u);
}

TEST(FindOrder, AWindowCutsWhatIsCountedFromTheFirstKey) {
  OrderedCall call = call_by({.tile = 64}, {900});
  const int left = 500, first = 900 - left - 1;
  call.order = [first](int, int, const ListRange &) {
    TileOrder order;
    for (int at = 64 * 14; at + 64 > first; at -= 64)
      order.push_back({0, 0, std::max(at, first), std::min(at + 64, 900)});
    return order;
  };
  call.run();
  assay_judge_attention_params params = call.params();
  params.window_left = left;
  assay_judge_report report{};
  report.struct_size = sizeof report;
  ASSERT_EQ(assay_judge_attention(&params, &report), ASSAY_OK);
  EXPECT_EQ(report.verdict, ASSAY_JUDGE_INSIDE);
  EXPECT_STREQ(report.order.words,
               "tiles of 64, 1 split, backwards; 8 of 8 heads of rows explained");
}

TEST(FindOrder, ASinkIsASplitOfItsOwn) {
  const OrderRule rule{.tile = 64, .parts = 2};
  OrderedCall call = call_by(rule, {600});
  for (int head = 0; head < call.heads; ++head)
    call.sinks.push_back(0.5f * static_cast<float>(head) - 1.0f);
  call.run();
  const assay_judge_report report = call.judge();
  EXPECT_EQ(report.verdict, ASSAY_JUDGE_INSIDE);
  EXPECT_EQ(report.order.explained, 8u) << report.order.words;
  // What is allowed by the order is what the bounds of a declared one allow.
  call.run_head(0, 5, {.factor = 2.0f});
  const CallRows rows = rows_of(call.params());
  const CallOutputs outputs{call.o.data(), nullptr};
  const KernelModel model{.arithmetic = call.arithmetic};
  const auto &attention = std::get<AttentionRows>(rows);
  AttentionReader reader(attention, model);
  RowProblem problem = reader.problem(0, 5);
  TileOrder order = order_of(rule, {600, 0, 600});
  OrderSearch search(attention, outputs, model, {});
  const PairByOrder pair = search.by_order(0, 5, order);
  append_sink(order, 600);
  problem.order = &order;
  const RowReference row = attention_row(problem);
  double worst = 0.0;
  for (size_t i = 0; i < row.o.size(); ++i) {
    const float got =
        load_element(call.dtype, call.o.data(), static_cast<int64_t>(i) + int64_t{5} * call.dim);
    worst = std::max(worst, std::fabs(static_cast<double>(got) - row.t1.o[i].mid) /
                                row.t1.budget[i].total);
  }
  EXPECT_GT(worst, 1.0);
  EXPECT_GE(pair.worst, worst * (1 - 1e-12));
}

// Keys in a shuffled order: no kernel does that.
TEST(FindOrder, NoKnownOrderIsNoFinding) {
  OrderedCall call = call_by({.tile = 64}, {1024, 1000});
  call.emulation.tile = 16;
  call.arithmetic = declared(call.emulation);
  call.order = [](int request, int, const ListRange &range) {
    TileOrder order = deal_tiles(range.end, 16, 1, 1);
    std::mt19937_64 random(static_cast<uint64_t>(request) + 7);
    std::shuffle(order.begin(), order.end(), random);
    return order;
  };
  call.run();
  const assay_judge_report report = call.judge();
  EXPECT_EQ(report.verdict, ASSAY_JUDGE_INSIDE);
  EXPECT_EQ(report.order.state, ASSAY_JUDGE_ORDER_NONE);
  EXPECT_STREQ(report.order.words, "no known order fits");
  EXPECT_EQ(report.order.doubts, 0u);
}

// One row of many is cut in a way that nothing knows: its heads are all unexplained.
TEST(FindOrder, ARowWithAnOrderOfItsOwnIsNotAccused) {
  OrderedCall call = call_by({.tile = 64}, std::vector<int32_t>(12, 640));
  call.order = [](int request, int, const ListRange &range) {
    TileOrder order = deal_tiles(range.end, 64, 1, 1);
    if (request == 7) std::rotate(order.begin(), order.begin() + 5, order.end());
    return order;
  };
  call.run();
  const assay_judge_report report = call.judge();
  EXPECT_EQ(report.verdict, ASSAY_JUDGE_INSIDE);
  EXPECT_EQ(report.order.state, ASSAY_JUDGE_ORDER_FOUND);
  EXPECT_LT(report.order.explained, 96u);
  EXPECT_EQ(report.order.doubts, 0u);
}

// One kv head of many is computed in pieces, as schedulers cut that give every block equal work.
TEST(FindOrder, AKvHeadWithAnOrderOfItsOwnIsNotAccused) {
  for (int group : {1, 2}) {
    OrderedCall call = call_by({.tile = 64}, {700});
    call.heads = 22;
    call.kv_heads = 22 / group;
    std::mt19937_64 random(3);
    call.draw(random);
    const int marked = 5;
    call.order = [&](int, int head, const ListRange &range) {
      TileOrder order = deal_tiles(range.end, 64, 1, 1);
      if (head / group != marked) return order;
      // With one head of its kv head a cut at a tile; with more, an order that nothing knows.
      if (group == 1)
        for (KeyTile &tile : order)
          tile.split = tile.begin >= 256 ? 1 : 0;
      else
        std::rotate(order.begin(), order.begin() + 5, order.end());
      return order;
    };
    call.run();
    const assay_judge_report report = call.judge();
    EXPECT_EQ(report.verdict, ASSAY_JUDGE_INSIDE) << group << report.order.words;
    EXPECT_EQ(report.order.state, ASSAY_JUDGE_ORDER_FOUND) << group;
    EXPECT_LT(report.order.explained, report.order.pairs) << group;
    EXPECT_EQ(report.order.doubts, 0u) << group;
  }
}

// An append of tokens: the prefix in tiles, then the new ones in tiles of their own.
TEST(FindOrder, TilesThatBeginAnewAreNotAccused) {
  for (int fresh : {1, 3, 40}) {
    OrderedCall call = call_by({.tile = 64}, {500});
    call.heads = 96;
    call.kv_heads = 12;
    std::mt19937_64 random(static_cast<uint64_t>(fresh));
    call.draw(random);
    call.order = [&](int, int, const ListRange &range) {
      TileOrder order = deal_tiles(range.end - fresh, 64, 1, 1);
      order.push_back({0, 0, range.end - fresh, range.end});
      return order;
    };
    call.run();
    const assay_judge_report report = call.judge();
    EXPECT_EQ(report.verdict, ASSAY_JUDGE_INSIDE) << fresh << " " << report.order.words;
    EXPECT_EQ(report.order.doubts, 0u) << fresh;
  }
}

// Where other heads do not know the order, nothing follows from one of them.
TEST(FindOrder, ARowOfFewHeadsAccusesNobody) {
  const OrderRule rule{.tile = 64};
  OrderedCall call = call_by(rule, {1000}, 4);
  call.run();
  lose_a_key(call, 0, 2);
  const assay_judge_report report = call.judge();
  EXPECT_EQ(report.verdict, ASSAY_JUDGE_INSIDE);
  EXPECT_EQ(report.order.explained, 3u);
  EXPECT_EQ(report.order.pairs, 4u);
}

// All elements are inside T1, and their error as one is not.
TEST(FindOrder, AScaledOutputIsSeenAlongItsError) {
  const OrderRule rule{.tile = 128, .backwards = true, .parts = 16};
  OrderedCall call = call_by(rule, {2048});
  call.dim = 128;
  call.dtype = ASSAY_FP16;
  std::mt19937_64 random(4);
  call.draw(random);
  call.run();
  call.run_head(0, 3, {.factor = 1.0008f});
  const CallRows rows = rows_of(call.params());
  const KernelModel model{.arithmetic = call.arithmetic};
  OrderSearch search(std::get<AttentionRows>(rows), {call.o.data(), nullptr}, model, {});
  const TileOrder order = order_of(rule, call.range_of(0));
  for (int head = 0; head < call.heads; ++head) {
    const PairByOrder pair = search.by_order(0, head, order);
    EXPECT_EQ(pair.explained, head != 3) << head;
    if (head != 3) continue;
    EXPECT_GT(pair.worst, 1.0);
    AttentionReader reader(std::get<AttentionRows>(rows), model);
    RowProblem problem = reader.problem(0, head);
    problem.order = &order;
    const ReplayedRow row = attention_row(problem).t1;
    for (size_t i = 0; i < row.o.size(); ++i) {
      const auto at = static_cast<int64_t>(i) + int64_t{head} * call.dim;
      const double off = std::fabs(load_element(ASSAY_FP16, call.o.data(), at) - row.o[i].mid);
      EXPECT_LE(off, row.budget[i].total) << i;
    }
  }
}

// Some rows know their order, and too many of the call do not.
TEST(FindOrder, ACallOfUnknownOrdersAccusesNobody) {
  OrderedCall call = call_by({.tile = 64}, {1000, 1000});
  call.order = [](int request, int, const ListRange &range) {
    TileOrder order = deal_tiles(range.end, 64, 1, 1);
    if (request == 1) std::rotate(order.begin(), order.begin() + 5, order.end());
    return order;
  };
  call.run();
  lose_a_key(call, 0, 3);
  const assay_judge_report report = call.judge();
  EXPECT_EQ(report.order.state, ASSAY_JUDGE_ORDER_FOUND);
  EXPECT_EQ(report.order.doubts, 0u);
}

// A quarter of a row is wrong, of many that are right.
TEST(FindOrder, ARowWithManyMistakesIsNoFinding) {
  const OrderRule rule{.tile = 64};
  OrderedCall call = call_by(rule, {1000, 1000, 1000, 1000, 1000, 1000});
  call.run();
  lose_a_key(call, 2, 1);
  lose_a_key(call, 2, 5);
  const assay_judge_report report = call.judge();
  EXPECT_EQ(report.order.explained, 46u);
  EXPECT_EQ(report.order.doubts, 0u);
}

// Half of the heads are wrong: then it is the order that is not known.
TEST(FindOrder, ManyMistakenHeadsAreNoFinding) {
  const OrderRule rule{.tile = 64};
  OrderedCall call = call_by(rule, {1000}, 16);
  call.run();
  for (int head : {1, 6, 11, 12})
    lose_a_key(call, 0, head);
  EXPECT_EQ(call.judge().order.doubts, 0u);
}

TEST(FindOrder, WhatT0KnowsStaysTheWorstAndDecidesNothingElse) {
  const OrderRule rule{.tile = 64};
  OrderedCall call = call_by(rule, {1000}, 16);
  call.run();
  lose_a_key(call, 0, 9);
  for (int head : {2, 3})
    call.run_head(0, head, {.factor = 1.5f});
  const assay_judge_report report = call.judge();
  EXPECT_EQ(report.verdict, ASSAY_JUDGE_OUTSIDE);
  EXPECT_STREQ(report.worst.reason, "outside the interval");
  EXPECT_EQ(report.order.pairs, 14u);
  EXPECT_EQ(report.order.doubts, 1u);
}

TEST(FindOrder, ManyThreadsSayWhatOneSays) {
  OrderedCall call = call_by({.tile = 64}, {200, 1200, 700, 330});
  call.order = [](int, int, const ListRange &range) {
    return order_of({.tile = 64, .parts = 1 + range.length / 300}, range);
  };
  call.run();
  lose_a_key(call, 1, 3);
  const assay_judge_report one = call.judge(1), many = call.judge(5);
  EXPECT_EQ(std::memcmp(&one.order, &many.order, sizeof one.order), 0);
  EXPECT_EQ(one.order.doubt_ratio, many.order.doubt_ratio);
}

TEST(FindOrder, NothingIsLookedForWhereNoWeightIsRounded) {
  const OrderRule rule{.tile = 64};
  OrderedCall call = call_by(rule, {300});
  call.run();
  call.arithmetic.p_format = ASSAY_FORMAT_FP32;
  const assay_judge_report report = call.judge();
  EXPECT_EQ(report.order.state, ASSAY_JUDGE_ORDER_NOT_LOOKED_FOR);
  EXPECT_STREQ(report.order.words, "");
}

// Candidates are partitions, and no two of a list are one.
TEST(KnownOrders, ArePartitionsAndDiffer) {
  assay_arithmetic arithmetic{};
  arithmetic.tile_tokens = 64;
  arithmetic.max_splits = 128;
  arithmetic.max_parallel_states = 4;
  for (int length : {1, 64, 65, 1000, 4096}) {
    const std::vector<OrderRule> rules = known_orders(arithmetic, length);
    EXPECT_FALSE(rules.empty());
    for (const OrderRule &rule : rules) {
      require_partition(order_of(rule, {length, 0, length}), static_cast<size_t>(length));
      EXPECT_LE(splits_of(rule, length), 128);
      if (length < 60) continue;
      require_partition(order_of(rule, {length, 17, length - 5}), static_cast<size_t>(length - 22));
    }
  }
  const ListRange range{500, 30, 490};
  int orders = 0;
  near_orders({.tile = 64, .backwards = true, .parts = 3}, range, [&](const TileOrder &order) {
    require_partition(order, 460);
    ++orders;
  });
  EXPECT_GT(orders, 1000 + 900);
}

TEST(KnownOrders, SplitsAreThoseOfTheKernels) {
  // FlashAttention-2 with kBlockN 128 and num_splits 3: 8 blocks, 3 for each split.
  const TileOrder order = order_of({.tile = 128, .backwards = true, .parts = 3}, {1000, 0, 1000});
  ASSERT_EQ(order.size(), 8u);
  EXPECT_EQ(order[0].begin, 256);
  EXPECT_EQ(order[0].end, 384);
  EXPECT_EQ(order[2].begin, 0);
  EXPECT_EQ(order[2].split, 0);
  EXPECT_EQ(order[3].begin, 640);
  EXPECT_EQ(order[3].split, 1);
  EXPECT_EQ(order[6].begin, 896);
  EXPECT_EQ(order[6].end, 1000);
}

} // namespace
} // namespace assay::oracle::test
