// SPDX-License-Identifier: Apache-2.0
#include "properties/case/shrink.h"

#include <unistd.h>

#include <gtest/gtest.h>

#include "properties/case/codec.h"
#include "properties/case/directed.h"
#include "properties/case/problem_gen.h"
#include "properties/case/simplest.h"
#include "properties/run/registry.h"
#include "properties/tests/reference_kernels.h"

namespace assay {
namespace {

Problem large_case(Family family) {
  // The first draw with several rows and heads.
  for (uint64_t seed = 0;; ++seed) {
    Problem p = draw_problem(check_limits(), family, seed);
    if (p.batch > 2 && p.num_kv_heads > 1 && p.v.regime > Regime::kNormal) return p;
  }
}

TEST(Shrink, ReachesTheSimplestCaseWhenEverythingFails) {
  for (Family family :
       {Family::kPaged, Family::kCascade, Family::kMergeState, Family::kMergeStates}) {
    Problem p = shrink(large_case(family), [](const Problem &) { return true; });
    EXPECT_EQ(p.batch, 1);
    EXPECT_EQ(p.num_qo_heads(), 1);
    EXPECT_EQ(p.v.regime, Regime::kBinary);
    EXPECT_EQ(p.poison, Poison::kNan);
    EXPECT_LT(complexity(p), 400);
  }
}

TEST(Shrink, KeepsWhatTheFailureNeeds) {
  Problem p = large_case(Family::kPaged);
  p.batch = 3;
  p.placement = Placement::kIdentity;
  p.page_size = 16;
  p.sharing = Sharing::kNone;
  p.seq_lens = {40, 77, 12};
  auto fails = [](const Problem &c) {
    for (int n : c.seq_lens)
      if (n >= 33 && c.page_size >= 4) return true;
    return false;
  };
  Problem small = shrink(p, fails);
  EXPECT_EQ(small.batch, 1);
  EXPECT_EQ(small.seq_lens, std::vector<int>{33});
  EXPECT_EQ(small.page_size, 4);
  EXPECT_EQ(small.group_size, 1);
}

// An LSE other than -inf needs a sink or a key; the sink without a key is no simpler.
TEST(Shrink, AKeyTakesThePlaceOfASink) {
  Problem p;
  p.seq_lens = {0};
  p.sinks = Sinks::kNormal;
  const Problem small = shrink(
      p, [](const Problem &c) { return c.sinks != Sinks::kNone || c.seq_lens != std::vector{0}; });
  EXPECT_EQ(small.sinks, Sinks::kNone);
  EXPECT_EQ(small.seq_lens, std::vector{1});
}

TEST(Shrink, IsDeterministicAndEndsWithinItsBudget) {
  Problem p = large_case(Family::kCascade);
  auto fails = [](const Problem &c) { return c.num_kv_heads > 1; };
  EXPECT_EQ(shrink(p, fails), shrink(p, fails));
  ShrinkStats stats;
  shrink(p, fails, {.checks = 3, .seconds = 10}, &stats);
  EXPECT_EQ(stats.checks, 3);
  EXPECT_TRUE(stats.exhausted);
}

TEST(Shrink, SaysWhichFieldsItHasTried) {
  Problem p = large_case(Family::kPaged);
  p.k_pad = 1;
  const auto fails = [](const Problem &c) { return c.num_kv_heads > 1 && c.k_pad == 1; };
  ShrinkStats all, few;
  shrink(p, fails, {}, &all);
  EXPECT_TRUE(all.knows(ShrinkField::kHeads));
  EXPECT_TRUE(all.knows(ShrinkField::kShape));
  // Heads are tried before strides are.
  int heads_tried = 0;
  do {
    few = {};
    shrink(p, fails, {.checks = ++heads_tried}, &few);
  } while (!few.knows(ShrinkField::kHeads));
  EXPECT_TRUE(few.exhausted);
  EXPECT_FALSE(few.knows(ShrinkField::kShape));
}

// What other programs leave of the processor must not cut the search short.
TEST(Shrink, TimeIsThatOfTheProcessor) {
  const Problem p = large_case(Family::kPaged);
  ShrinkStats stats;
  const auto fails = [](const Problem &c) {
    usleep(50000);
    return c.num_kv_heads > 1;
  };
  // A second asleep, and a few tenths of the processor, where a sanitizer slows it down.
  shrink(p, fails, {.checks = 20, .seconds = 0.8}, &stats);
  EXPECT_TRUE(stats.checks == 20 || !stats.exhausted) << stats.checks;
  double spent = 0;
  shrink(p, fails, {.seconds = 1, .clock = [&] { return spent += 0.3; }}, &stats);
  EXPECT_TRUE(stats.exhausted);
}

TEST(Differences, AreThoseFromTheSimplestCase) {
  for (Family family :
       {Family::kPaged, Family::kCascade, Family::kMergeState, Family::kMergeStates}) {
    const Problem p = shrink(large_case(family), [](const Problem &) { return true; });
    for (const std::string &field : differences(p))
      EXPECT_TRUE(field == "seq_lens = 0" || field == "num_states = 0" ||
                  family == Family::kCascade)
          << name_of(family) << ": " << field;
  }
  Problem p = decode_family({}, full_limits(), Family::kPaged);
  EXPECT_TRUE(differences(p).empty());
  p.k_layout = Layout::kHnd;
  p.q_len = 2;
  p.q.seed = 7;
  EXPECT_EQ(differences(p), (std::vector<std::string>{"k_layout = hnd", "q_len = 2"}));
  Problem own_key_alone = p;
  own_key_alone.window_left = 0;
  EXPECT_EQ(differences(own_key_alone).back(), "window_left = 0");
  p.base_seed = 3;
  p.logits_soft_cap = Softcap::kThirty;
  EXPECT_EQ(differences(p), (std::vector<std::string>{"k_layout = hnd", "q_len = 2",
                                                      "logits_soft_cap = 30", "base_seed = 3"}));
}

// More requests than there is memory for a candidate each: the budget is kept all the same.
TEST(Shrink, ManyRequestsBecomeFew) {
  for (Family family : {Family::kPaged, Family::kCascade}) {
    Problem p = with_most_requests(draw_problem(check_limits(), family, 3));
    ASSERT_GT(p.batch, 2000);
    const auto keys = [](const Problem &c) {
      int sum = 0;
      for (int len : c.seq_lens)
        sum += len;
      for (const CascadeLevel &level : c.levels)
        for (size_t s = 0; s < level.lens.size(); ++s)
          sum += level.requests[s] > 0 ? level.lens[s] : 0;
      return sum;
    };
    const Problem small = shrink(p, [&](const Problem &c) { return keys(c) >= 5; });
    EXPECT_GE(keys(small), 5);
    EXPECT_LE(small.batch, 4) << name_of(family);
    ShrinkStats stats;
    EXPECT_EQ(shrink(
                  p, [](const Problem &) { return true; }, {.checks = 0}, &stats),
              p);
    EXPECT_TRUE(stats.exhausted);
  }
}

TEST(Shrink, CandidatesNeverGrowAndOnlyWellFormedOnesAreTried) {
  for (Family family :
       {Family::kPaged, Family::kCascade, Family::kMergeState, Family::kMergeStates})
    for (uint64_t seed = 0; seed < 30; ++seed) {
      Problem p = draw_problem(check_limits(), family, seed);
      for (const auto &field : shrink_candidates(p))
        for (const Problem &c : field) {
          ASSERT_NE(c, p);
          ASSERT_LE(complexity(c), complexity(p));
        }
      shrink(p, [](const Problem &c) {
        EXPECT_EQ(problem_error(c, full_limits()), "");
        return false;
      });
    }
}

TEST(Shrink, ARealFailureBecomesOneRowAndAFewKeys) {
  reference::WithBug defect(reference::Bug::kDropsLastKey);
  auto sut = make_simt_sut(reference::kernel("reference_v1"));
  const Property *property = find_property("zero_query_counts_keys");
  auto fails = [&](const Problem &c) { return property->check(c, *sut).failed(); };
  for (uint64_t seed = 0;; ++seed) {
    Problem p = draw_problem(check_limits(), Family::kPaged, seed);
    if (!fails(p)) continue;
    Problem small = shrink(p, fails);
    EXPECT_EQ(small.batch, 1);
    EXPECT_EQ(small.num_qo_heads(), 1);
    EXPECT_EQ(small.seq_lens, std::vector<int>{2});
    EXPECT_EQ(small.head_dim, 64);
    break;
  }
}

} // namespace
} // namespace assay
