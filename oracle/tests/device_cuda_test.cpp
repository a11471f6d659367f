// SPDX-License-Identifier: Apache-2.0
// Every tier of random calls, as the GPU has it and as the host has it.
#include <cstdio>
#include <iterator>

#include "oracle/tests/managed_memory.h"
#include "oracle/tests/odd_call.h"
#include "oracle/tests/other_calls.h"
#include "oracle/tests/random_merge.h"

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
              "budgets %.12f to %.12f of the host's, radii %.9f to %.9f\n",
              what, number(all.elements), number(all.of_tier[0]), number(all.of_tier[1]),
              number(all.of_tier[2]), number(all.inside), number(all.rows), all.least, all.most,
              all.least_radius, all.most_radius);
}

/// Calls of `draw`, by every tier and by the first alone.
test::TiersCompared compare_calls(int calls, unsigned seed, test::Options (*draw)(std::mt19937 &)) {
  TierJudge judge;
  std::mt19937 random(seed);
  test::TiersCompared all;
  for (int i = 0; i < calls; ++i) {
    ManagedMemory memory;
    const RandomCall call(draw(random), random(), memory);
    EXPECT_EQ(tiers_refuse(call.rows, call.model), "");
    for (const bool first_alone : {false, true}) {
      const test::TiersCompared one =
          compare_tiers(call, judged(judge, call, first_alone), first_alone);
      expect_agreement(one, i);
      all.add(one);
    }
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
      for (const bool first_alone : {false, true}) {
        const test::TiersCompared one =
            compare_tiers(call, judged(judge, call, first_alone), first_alone);
        expect_agreement(one, i);
        all.add(one);
      }
    }
  }
  print("other types", all);
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
  std::printf("%llu elements of merges, budgets %.12f to %.12f of the host's\n",
              static_cast<unsigned long long>(all.elements), all.least, all.most);
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
