// SPDX-License-Identifier: Apache-2.0
// Every tier of random calls, as the GPU has it and as the host has it.
#include <cstdio>
#include <iterator>

#include "oracle/device/groups_call.h"
#include "oracle/tests/bent_call.h"
#include "oracle/tests/managed_memory.h"
#include "oracle/tests/odd_call.h"
#include "oracle/tests/other_calls.h"

namespace assay::oracle {
namespace {

using test::ManagedMemory;
using test::RandomCall;

class TiersOnDevice : public testing::Test {
protected:
  void SetUp() override {
    int count = 0;
    if (cudaGetDeviceCount(&count) != cudaSuccess || count == 0) GTEST_SKIP() << "no GPU";
  }
};

TierReport judged(TierJudge &judge, const RandomCall &call, bool first_alone = false) {
  return judge.judge(call.rows, call.outputs(), call.model, nullptr,
                     {.first_tier_alone = first_alone, .elements = true});
}

void print(const char *what, const test::TiersCompared &all) {
  const auto number = [](uint64_t n) { return static_cast<unsigned long long>(n); };
  std::printf("%s: %llu elements (T0 and LSE %llu, T1 %llu, T2 %llu), %llu of %llu rows inside, "
              "%llu as one, %llu nearly outside, "
              "budgets %.12f to %.12f of the host's, radii %.9f to %.9f\n",
              what, number(all.elements), number(all.of_tier[0]), number(all.of_tier[1]),
              number(all.of_tier[2]), number(all.inside), number(all.rows), number(all.as_one),
              number(all.near), all.least, all.most, all.least_radius, all.most_radius);
}

/// Adds what is said of a call by every tier, and by the first alone.
void compare_both(TierJudge &judge, const RandomCall &call, int number, test::TiersCompared &all) {
  for (const bool first_alone : {false, true}) {
    const test::TiersCompared one =
        compare_tiers(call, judged(judge, call, first_alone), first_alone);
    expect_agreement(one, number);
    all.add(one);
  }
}

/// Calls of `draw`.
test::TiersCompared compare_calls(int calls, unsigned seed, test::Options (*draw)(std::mt19937 &)) {
  TierJudge judge;
  std::mt19937 random(seed);
  test::TiersCompared all;
  for (int i = 0; i < calls; ++i) {
    ManagedMemory memory;
    const RandomCall call(draw(random), random(), memory);
    EXPECT_EQ(tiers_refuse(call.rows, call.model), "");
    compare_both(judge, call, i, all);
  }
  return all;
}

TEST_F(TiersOnDevice, SayWhatTheHostSays) {
  const test::TiersCompared all = compare_calls(150, 13, test::random_tier_options);
  print("calls", all);
  EXPECT_GT(all.inside * 2, all.rows);
}

TEST_F(TiersOnDevice, OfRowsThatShareKeysSayWhatTheHostSays) {
  print("rows that share keys", compare_calls(150, 19, test::random_group_options));
}

/// Both types, with an order of keys or without, heads of up to 256 elements.
TEST_F(TiersOnDevice, WithoutAnOrderSayWhatTheHostSays) {
  print("without an order", compare_calls(120, 7, test::random_options));
}

/// Queries rounded to 11 or 7 bits: what a score is off by is then sum |k_i|.
test::Options rounded_query_options(std::mt19937 &random) {
  test::Options o = test::random_options(random);
  const int dims[] = {16, 40, 64, 96, 128, 200, 256, 320, 512, 576};
  o.head_dim = dims[random() % std::size(dims)];
  o.q_error = random() % 2 ? 0x1p-12f : 0x1p-8f;
  return o;
}

TEST_F(TiersOnDevice, OfRoundedQueriesAndWideHeadsSayWhatTheHostSays) {
  print("rounded queries", compare_calls(60, 31, rounded_query_options));
}

TEST_F(TiersOnDevice, OfCallsOfOtherTypesSayWhatTheHostSays) {
  TierJudge judge;
  test::TiersCompared all;
  for (const test::Other other : test::kOthers) {
    std::mt19937 random(29);
    for (int i = 0; i < 30; ++i) {
      ManagedMemory memory;
      RandomCall call(options_for(other, random), random(), memory);
      test::OtherCall(call, random(), memory).make(other);
      compare_both(judge, call, i, all);
    }
  }
  print("other types", all);
}

TEST_F(TiersOnDevice, RowsAsOneSayWhatTheHostSays) {
  TierJudge judge;
  std::mt19937 random(41);
  test::TiersCompared all;
  for (int i = 0; i < 150; ++i) {
    ManagedMemory memory;
    const test::BentCall bent(random, memory);
    compare_both(judge, bent.call, i, all);
  }
  print("rows as one", all);
  EXPECT_GT(all.as_one, 1'000u);
  EXPECT_GT(all.near, 100u);
  EXPECT_GT(all.rows, all.inside + 100);
}

/// Launches that follow each other make weights with the values, or before, and take values in one
/// part or several.
TEST_F(TiersOnDevice, RowsAsOneOfLargeCallsSayWhatTheHostSays) {
  TierJudge judge;
  std::mt19937 random(47);
  test::TiersCompared all;
  for (const assay_dtype dtype : {ASSAY_BF16, ASSAY_FP16})
    for (const int dims : {64, 128, 256})
      for (const bool sinks : {false, true}) {
        test::Options o;
        o.dtype = o.kv_dtype = dtype;
        o.head_dim = dims;
        o.lengths = {9000, 700, 6000, 0, 130, 3000};
        o.group = 8;
        o.sinks = sinks;
        ManagedMemory memory;
        RandomCall call(o, random(), memory);
        ASSERT_GE(device::keys_of_pairs(call.rows), 1 << 18); // as GroupDevice counts
        bend(call, random);
        const test::TiersCompared one = compare_tiers(call, judged(judge, call));
        expect_agreement(one, dims);
        all.add(one);
      }
  print("rows as one of large calls", all);
  EXPECT_GT(all.as_one, 300u);
}

TEST_F(TiersOnDevice, LeaveToTheHostWhatNoElementShows) {
  TierJudge judge;
  for (const int requests : {3, 60}) { // one launch, and several
    test::Options o;
    o.lengths.assign(static_cast<size_t>(requests), 700);
    ManagedMemory memory;
    RandomCall call(o, 3, memory);
    ASSERT_TRUE(judged(judge, call).open.empty());
    bend(call, requests - 1, 5, 1.012);
    const TierReport report = judged(judge, call);
    ASSERT_EQ(report.open.size(), 1u);
    EXPECT_EQ(report.open[0].row, requests - 1);
    EXPECT_EQ(report.open[0].head, 5);
    EXPECT_LT(report.rows[static_cast<size_t>((requests - 1) * call.rows.out.heads + 5)].worst[0],
              1.0);
  }
}

TEST_F(TiersOnDevice, OfOddCallsSayWhatTheHostSays) {
  TierJudge judge;
  for (int i = 0; i < test::kOddCalls; ++i) {
    ManagedMemory memory;
    const auto call = test::odd_call(i, memory);
    expect_agreement(compare_tiers(*call, judged(judge, *call)), i);
  }
}

TEST_F(TiersOnDevice, Merges) {
  MergeJudge judge;
  test::TiersCompared all;
  for (unsigned seed = 0; seed < 500; ++seed) {
    ManagedMemory memory;
    const test::RandomMerge call(seed, memory);
    const TierReport report = judge.judge(call.rows, call.outputs(), call.model, nullptr, true);
    const test::TiersCompared one = compare_merges(call, report);
    if (one.elements > 0) expect_agreement(one, static_cast<int>(seed));
    EXPECT_EQ(one.inside, one.rows) << "call " << seed;
    all.add(one);
  }
  print("merges", all);
}

TEST_F(TiersOnDevice, RowsAsOneOfMerges) {
  MergeJudge judge;
  std::mt19937 random(7);
  test::TiersCompared all;
  for (unsigned seed = 0; seed < 300; ++seed) {
    ManagedMemory memory;
    test::RandomMerge call(seed, memory);
    bend(call, random);
    const test::TiersCompared one =
        compare_merges(call, judge.judge(call.rows, call.outputs(), call.model, nullptr, true));
    if (one.elements > 0) expect_agreement(one, static_cast<int>(seed));
    all.add(one);
  }
  print("merges as one", all);
  EXPECT_GT(all.as_one, 400u);
  EXPECT_GT(all.rows, all.inside + 40);
}

TEST_F(TiersOnDevice, LongRows) {
  TierJudge judge;
  test::Options o;
  o.lengths = {8192, 20000};
  o.group = 4;
  o.kv_heads = 1;
  o.tile = 64;
  o.splits = 8;
  o.replay_scores = true;
  ManagedMemory memory;
  const RandomCall call(o, 5, memory);
  const TierReport report = judged(judge, call);
  expect_agreement(compare_tiers(call, report), 0);
  EXPECT_TRUE(report.open.empty());
}

TEST_F(TiersOnDevice, LongRowsOfOneOrderOrAnother) {
  TierJudge judge;
  std::mt19937 random(23);
  for (const assay_dtype dtype : {ASSAY_BF16, ASSAY_FP16})
    for (const int tile : {0, 16, 64, 128}) {
      test::Options o;
      o.dtype = o.kv_dtype = dtype;
      o.lengths = {8192, 20000};
      o.group = 4;
      o.kv_heads = 1;
      o.tile = tile;
      o.splits = tile == 16 ? 1 : 8;
      o.states = tile == 128 ? 2 : 1;
      ManagedMemory memory;
      const RandomCall call(o, random(), memory);
      for (const bool first_alone : {false, true}) {
        const TierReport report = judged(judge, call, first_alone);
        expect_agreement(compare_tiers(call, report, first_alone), tile);
        EXPECT_TRUE(report.open.empty());
      }
    }
}

TEST_F(TiersOnDevice, LeaveAWrongElementToTheHost) {
  TierJudge judge;
  test::Options o;
  o.lengths = {300, 120, 64};
  o.tile = 64;
  o.replay_scores = true;
  ManagedMemory memory;
  RandomCall call(o, 3, memory);
  bool first_alone = false;
  const auto open = [&] { return judged(judge, call, first_alone).open; };
  ASSERT_TRUE(open().empty());
  auto *element = static_cast<uint16_t *>(call.o_of(1, 5, 77));
  const uint16_t right = *element;
  for (const bool alone : {false, true}) {
    first_alone = alone;
    // T2 sees two steps.
    for (const uint16_t wrong :
         {uint16_t(alone ? right ^ 0x8000 : right + 2), uint16_t(0x7FC0), uint16_t(0x7F80)}) {
      *element = wrong;
      ASSERT_EQ(open().size(), 1u) << wrong;
      EXPECT_EQ(open()[0].row, 1);
      EXPECT_EQ(open()[0].head, 5);
    }
    *element = right;
  }
  float *lse = call.lse_of(2, 3);
  *lse *= 1.442695f;
  ASSERT_EQ(open().size(), 1u);
  EXPECT_EQ(open()[0].head, 3);
}

} // namespace
} // namespace assay::oracle
