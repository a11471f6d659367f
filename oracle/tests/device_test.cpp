// SPDX-License-Identifier: Apache-2.0
// The text that a GPU runs of every tier, run here: the same claims, enclosures, budgets and
// verdicts as the host's own loops.
#include "oracle/bounds/replay_tiles.h"
#include "oracle/tests/odd_call.h"
#include "oracle/tests/other_calls.h"
#include "oracle/tests/tiers_compare.h"

namespace assay::oracle {
namespace {

using test::HostMemory;
using test::RandomCall;

TierReport judged(const RandomCall &call) {
  return judge_tiers_here(call.rows, call.outputs(), call.model, {.elements = true});
}
TierReport judged_by_first(const RandomCall &call) {
  return judge_tiers_here(call.rows, call.outputs(), call.model,
                          {.first_tier_alone = true, .elements = true});
}

/// Calls of `draw`, by every tier or by the first alone.
test::TiersCompared compare_calls(int calls, unsigned seed, test::Options (*draw)(std::mt19937 &),
                                  bool first_alone = false) {
  std::mt19937 random(seed);
  test::TiersCompared all;
  for (int i = 0; i < calls; ++i) {
    HostMemory memory;
    const RandomCall call(draw(random), random(), memory);
    EXPECT_EQ(tiers_refuse(call.rows, call.model), "");
    const test::TiersCompared one =
        compare_tiers(call, first_alone ? judged_by_first(call) : judged(call), first_alone);
    expect_agreement(one, i);
    all.add(one);
  }
  EXPECT_GT(all.inside * 2, all.rows);
  return all;
}

TEST(Tiers, SayWhatTheHostSays) {
  const test::TiersCompared all = compare_calls(24, 11, test::random_tier_options);
  // Otherwise nothing was compared.
  for (const uint64_t elements : all.of_tier)
    EXPECT_GT(elements, 8'000u);
}

TEST(Tiers, OfRowsThatShareKeysSayWhatTheHostSays) {
  const test::TiersCompared all = compare_calls(16, 17, test::random_group_options);
  EXPECT_GT(all.of_tier[0], 8'000u);
  EXPECT_GT(all.of_tier[1], 8'000u);
}

TEST(Tiers, TheFirstAloneSaysWhatTheHostSays) {
  const test::TiersCompared all = compare_calls(16, 19, test::random_group_options, true);
  EXPECT_GT(all.of_tier[0], 8'000u);
  EXPECT_EQ(all.of_tier[1] + all.of_tier[2], 0u);
}

/// Head sizes that fill some parts of a key and leave some of one.
TEST(Tiers, OfWideHeadsSayWhatTheHostSays) {
  std::mt19937 random(23);
  test::TiersCompared all;
  for (const int dims : {136, 192, 256, 320, 512, 576}) {
    test::Options o = test::random_tier_options(random);
    o.head_dim = dims;
    o.lengths = {70, 0, 200};
    HostMemory memory;
    const RandomCall call(o, random(), memory);
    ASSERT_EQ(tiers_refuse(call.rows, call.model), "");
    const test::TiersCompared one = compare_tiers(call, judged(call));
    expect_agreement(one, dims);
    all.add(one);
  }
  EXPECT_GT(all.elements, 5'000u);
}

TEST(Tiers, OfCallsOfOtherTypesSayWhatTheHostSays) {
  for (const test::Other other : test::kOthers) {
    std::mt19937 random(29);
    test::TiersCompared all;
    for (int i = 0; i < 6; ++i) {
      HostMemory memory;
      RandomCall call(options_for(other, random), random(), memory);
      test::OtherCall(call, random(), memory).make(other);
      ASSERT_EQ(tiers_refuse(call.rows, call.model), "") << static_cast<int>(other);
      const test::TiersCompared one = compare_tiers(call, judged(call));
      expect_agreement(one, i);
      all.add(one);
    }
    EXPECT_GT(all.of_tier[0], 1'500u) << static_cast<int>(other);
    EXPECT_GT(all.inside * 4, all.rows) << static_cast<int>(other);
  }
}

TEST(Tiers, OfOddCallsSayWhatTheHostSays) {
  for (int i = 0; i < test::kOddCalls; ++i) {
    HostMemory memory;
    const auto call = test::odd_call(i, memory);
    expect_agreement(compare_tiers(*call, judged(*call)), i);
  }
}

/// A call of every tier.
test::Options plain() {
  test::Options o;
  o.lengths = {300, 120, 64};
  o.tile = 64;
  o.splits = 2;
  o.replay_scores = true;
  return o;
}

TEST(Tiers, LeaveAWrongElementToTheHost) {
  HostMemory memory;
  RandomCall call(plain(), 3, memory);
  ASSERT_TRUE(judged(call).open.empty());
  auto *o = static_cast<uint16_t *>(call.o_of(1, 5, 77));
  const uint16_t right = *o;
  for (const uint16_t wrong :
       {uint16_t(right + 2), uint16_t(right ^ 0x8000), uint16_t(0x7FC0), uint16_t(0x7F80)}) {
    *o = wrong;
    const TierReport report = judged(call);
    ASSERT_EQ(report.open.size(), 1u) << wrong;
    EXPECT_EQ(report.open[0].row, 1);
    EXPECT_EQ(report.open[0].head, 5);
    EXPECT_EQ(judge_one(call.rows, call.outputs(), call.model, 1, 5).verdict, Verdict::kOutside);
  }
  *o = right;
  *call.lse_of(2, 3) *= 1.0f + 0x1p-15f;
  ASSERT_EQ(judged(call).open.size(), 1u);
  EXPECT_EQ(judged(call).open[0].head, 3);
}

TEST(Tiers, TheFirstAloneLeavesAWrongElementToTheHost) {
  HostMemory memory;
  RandomCall call(plain(), 3, memory);
  ASSERT_TRUE(judged_by_first(call).open.empty());
  auto *element = static_cast<uint16_t *>(call.o_of(1, 5, 77));
  const uint16_t right = *element;
  for (const uint16_t wrong : {uint16_t(right ^ 0x8000), uint16_t(0x7FC0), uint16_t(0x7F80)}) {
    *element = wrong;
    const TierReport report = judged_by_first(call);
    ASSERT_EQ(report.open.size(), 1u) << wrong;
    EXPECT_EQ(report.open[0].row, 1);
    EXPECT_EQ(report.open[0].head, 5);
    EXPECT_EQ(report.doubtful.size(), 1u);
  }
}

/// O is 0 and the LSE -inf, or the host looks.
TEST(Tiers, DecideRowsWithoutKeys) {
  HostMemory memory;
  test::Options o = plain();
  o.lengths = {0, 40};
  RandomCall call(o, 7, memory);
  const auto open = [&] { return judged(call).open.size(); };
  EXPECT_EQ(open(), 0u);
  EXPECT_EQ(judged(call).decided.claimed,
            judge_call(call.rows, call.outputs(), call.model).claimed);
  auto *element = static_cast<uint16_t *>(call.o_of(0, 2, 5));
  *element = 0x8000; // either zero
  EXPECT_EQ(open(), 0u);
  *element = 1;
  EXPECT_EQ(open(), 1u);
  *element = 0;
  *call.lse_of(0, 1) = 0.0f;
  EXPECT_EQ(open(), 1u);
}

TEST(Tiers, NameRowsWithoutAClaimApart) {
  HostMemory memory;
  RandomCall call(plain(), 9, memory);
  auto *q = static_cast<uint16_t *>(const_cast<void *>(call.rows.q));
  q[call.rows.q_at[2] + call.rows.q_stride_head] = 0x7F80;
  const TierReport report = judged(call);
  EXPECT_EQ(report.open.size(), 1u);
  EXPECT_TRUE(report.doubtful.empty());
}

TEST(Tiers, ReportWhatTheHostReports) {
  HostMemory memory;
  const RandomCall call(plain(), 5, memory);
  const Report ours = judged(call).decided;
  const Report host = judge_call(call.rows, call.outputs(), call.model);
  EXPECT_EQ(ours.elements, host.elements);
  EXPECT_EQ(ours.claimed, host.claimed);
  EXPECT_NEAR(ours.worst_ratio_t0, host.worst_ratio_t0, 1e-9);
  EXPECT_NEAR(ours.worst_ratio_t1, host.worst_ratio_t1, 1e-9);
  EXPECT_NEAR(ours.worst_ratio_t2, host.worst_ratio_t2, 1e-9);
  EXPECT_NEAR(ours.worst_ratio_lse, host.worst_ratio_lse, 1e-9);
  EXPECT_NEAR(ours.worst.ratio, host.worst.ratio, 1e-9);
  EXPECT_EQ(ours.budgets.median(), host.budgets.median());
}

// A host and a GPU add the same masses in another order, and bound a row by the same scale.
TEST(Tiers, ChooseTheExactScaleWhereBothCostTheSame) {
  const auto scale = [](std::initializer_list<double> masses) {
    TileView tile{};
    tile.deviation = 1.0;
    ScaleCosts costs;
    tile.mass = 0.3;
    costs.add(tile);
    tile.reference = true;
    for (const double mass : masses) {
      tile.mass = mass;
      costs.add(tile);
    }
    return costs.cheaper().reference;
  };
  ASSERT_GT(0.3 + 0.1 + 0.2, 0.3 + 0.2 + 0.1);
  EXPECT_FALSE(scale({0.1, 0.2}));
  EXPECT_FALSE(scale({0.2, 0.1}));
  EXPECT_TRUE(scale({0.2, 0.1, 0.01}));
}

TEST(Tiers, RefuseAnOrderThatIsNone) {
  HostMemory memory;
  RandomCall call(plain(), 5, memory);
  auto order = *call.model.order;
  order.tiles.back().end -= 1;
  call.model.order = std::make_shared<KeyOrder>(order);
  EXPECT_THROW(judged(call), OrderError);
}

} // namespace
} // namespace assay::oracle
