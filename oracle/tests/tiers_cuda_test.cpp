// SPDX-License-Identifier: Apache-2.0
// Every tier of random calls, as the GPU has it and as the host has it.
#include <cstdio>

#include "oracle/tests/managed_memory.h"
#include "oracle/tests/odd_call.h"
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

TEST_F(TiersOnDevice, SayWhatTheHostSays) {
  TierJudge judge;
  std::mt19937 random(13);
  test::TiersCompared all;
  for (int i = 0; i < 150; ++i) {
    ManagedMemory memory;
    const RandomCall call(test::random_tier_options(random), random(), memory);
    const TierReport report = judge.judge(call.rows, call.outputs(), call.model, nullptr, true);
    const test::TiersCompared one = compare_tiers(call, report);
    expect_agreement(one, i);
    all.add(one);
  }
  std::printf(
      "%llu elements (T0 and LSE %llu, T1 %llu, T2 %llu), %llu of %llu rows inside, budgets "
      "%.12f to %.12f of the host's, radii %.9f to %.9f\n",
      static_cast<unsigned long long>(all.elements),
      static_cast<unsigned long long>(all.of_tier[0]),
      static_cast<unsigned long long>(all.of_tier[1]),
      static_cast<unsigned long long>(all.of_tier[2]), static_cast<unsigned long long>(all.inside),
      static_cast<unsigned long long>(all.rows), all.least, all.most, all.least_radius,
      all.most_radius);
}

TEST_F(TiersOnDevice, RowsThatShareKeys) {
  TierJudge judge;
  std::mt19937 random(19);
  test::TiersCompared all;
  for (int i = 0; i < 150; ++i) {
    ManagedMemory memory;
    const RandomCall call(test::random_group_options(random), random(), memory);
    const TierReport report =
        judge.judge_groups(call.rows, call.outputs(), call.model, nullptr, true);
    const test::TiersCompared one = compare_tiers(call, report);
    expect_agreement(one, i);
    all.add(one);
  }
  for (int i = 0; i < test::kOddCalls; ++i) {
    ManagedMemory memory;
    const auto call = test::odd_call(i, memory);
    const TierReport report =
        judge.judge_groups(call->rows, call->outputs(), call->model, nullptr, true);
    expect_agreement(compare_tiers(*call, report), i);
  }
  std::printf("rows that share keys: T0 and LSE %llu, T1 %llu, %llu of %llu rows inside, budgets "
              "%.12f to %.12f of the host's, radii %.9f to %.9f\n",
              static_cast<unsigned long long>(all.of_tier[0]),
              static_cast<unsigned long long>(all.of_tier[1]),
              static_cast<unsigned long long>(all.inside),
              static_cast<unsigned long long>(all.rows), all.least, all.most, all.least_radius,
              all.most_radius);
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
  const TierReport report = judge.judge(call.rows, call.outputs(), call.model, nullptr, true);
  expect_agreement(compare_tiers(call, report), 0);
  EXPECT_TRUE(report.open.empty());
}

TEST_F(TiersOnDevice, LongRowsThatShareKeys) {
  TierJudge judge;
  std::mt19937 random(23);
  for (const assay_dtype dtype : {ASSAY_BF16, ASSAY_FP16})
    for (const int tile : {16, 64, 128}) {
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
      const TierReport report =
          judge.judge_groups(call.rows, call.outputs(), call.model, nullptr, true);
      expect_agreement(compare_tiers(call, report), tile);
      EXPECT_TRUE(report.open.empty());
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
  bool together = false;
  const auto open = [&] {
    if (together) return judge.judge_groups(call.rows, call.outputs(), call.model).open;
    return judge.judge(call.rows, call.outputs(), call.model).open;
  };
  ASSERT_TRUE(open().empty());
  auto *element = static_cast<uint16_t *>(call.o_of(1, 5, 77));
  const uint16_t right = *element;
  for (const bool rows_together : {false, true}) {
    together = rows_together;
    call.model.replay_scores = !together; // T2 sees two steps
    for (const uint16_t wrong :
         {uint16_t(right + (together ? 16 : 2)), uint16_t(0x7FC0), uint16_t(0x7F80)}) {
      *element = wrong;
      ASSERT_EQ(open().size(), 1u) << wrong;
      EXPECT_EQ(open()[0].row, 1);
      EXPECT_EQ(open()[0].head, 5);
    }
  }
}

} // namespace
} // namespace assay::oracle
