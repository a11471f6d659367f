// SPDX-License-Identifier: Apache-2.0
// The bodies that a GPU runs, as the processor runs them: emulated right kernels are inside, wrong
// ones are not.
#include <gtest/gtest.h>

#include "oracle/tests/call_campaign.h"

namespace assay::oracle::test {
namespace {

TEST(CallCampaign, RightKernelsAreInside) {
  Bodies bodies(Bodies::Where::kHere);
  CallTally tally;
  for (uint64_t number = 0; number < 150ull * static_cast<uint64_t>(effort()); ++number)
    judge_drawn_call(bodies, 7, number, number % 4 == 0, tally);
  EXPECT_TRUE(tally.sound()) << (tally.wrong.empty() ? "" : tally.wrong.begin()->second.front());
  EXPECT_EQ(tally.fewer_claims, 0u);
  EXPECT_EQ(tally.refused, 0u);
  EXPECT_GT(tally.judged, 100'000u);
  EXPECT_GT(tally.compared, 20'000u);
  EXPECT_GT(tally.t0, 0.9);
  EXPECT_GT(tally.t1, 0.9);
  EXPECT_GT(tally.t2, 0.9);
  EXPECT_GT(tally.as_one, 200u);
  EXPECT_GT(tally.row, 0.5);
  EXPECT_EQ(tally.wider + tally.narrower, 0u);
  EXPECT_LT(tally.most_first, 1 + 1e-9);
  EXPECT_LT(tally.most_tiers, 1 + 1e-9);
}

/// What one machine's campaign names, another's finds again: draws do not depend on the compiler.
TEST(CallCampaign, ACallOfASeedIsTheSameWithEveryCompiler) {
  std::mt19937_64 random(806);
  const CallDraw draw = draw_call(random, 40);
  const RowFeatures &f = draw.common.features;
  EXPECT_FLOAT_EQ(f.k_scale, 2.28f);
  EXPECT_FLOAT_EQ(f.v_scale, 0.2075f);
  EXPECT_EQ(f.sink, -77.0f);
  EXPECT_DOUBLE_EQ(draw.common.emulation.exp2_error, 1.4 * 0x1p-8);
}

/// Weights that nothing rounds, beside operands of fp16 in the cache.
TEST(CallCampaign, UnroundedWeightsAreNoOperandsOfTheCachesType) {
  Bodies bodies(Bodies::Where::kHere);
  CallTally tally;
  for (const uint64_t number : {661, 3400, 5624})
    judge_drawn_call(bodies, 1, number, false, tally);
  EXPECT_TRUE(tally.sound()) << (tally.wrong.empty() ? "" : tally.wrong.begin()->second.front());
  EXPECT_GT(tally.judged, 1'000u);
}

/// N(0,1) rows of a plain kernel.
CallDraw plain_draw(std::mt19937_64 &random, Mutant mutant) {
  CallDraw draw;
  draw.common.emulation.seed = random();
  draw.common.emulation.mutant = mutant;
  draw.common.sm_scale = 0.125f;
  draw.common.splits = 4;
  draw.heads = 2;
  for (int i = 0; i < 3; ++i) {
    CallDraw::List list;
    list.regime = Regime::kNormal;
    list.row = draw_row(Regime::kNormal, ASSAY_BF16, 400, draw.dim, random);
    list.q = {list.row.q, draw_row(Regime::kNormal, ASSAY_BF16, 1, draw.dim, random).q};
    list.order = deal_tiles(400, 64, 4, 1);
    draw.lists.push_back(std::move(list));
  }
  return draw;
}

TEST(CallCampaign, WrongKernelsAreNot) {
  Bodies bodies(Bodies::Where::kHere);
  for (const Mutant mutant :
       {Mutant::kNone, Mutant::kSumMissesLane, Mutant::kMergeNormaliserOff, Mutant::kScaleInBf16,
        Mutant::kAccumulatorInBf16, Mutant::kTilePFourBits, Mutant::kOutputTruncated}) {
    std::mt19937_64 random(5);
    const EmulatedCall call(plain_draw(random, mutant), random);
    const std::vector<RowHead> open = bodies.every(call).open;
    if (mutant == Mutant::kNone) {
      EXPECT_TRUE(open.empty());
      continue;
    }
    ASSERT_FALSE(open.empty()) << mutant_name(mutant);
    EXPECT_EQ(judge_one(call.rows, call.outputs(), call.model, open[0].row, open[0].head).verdict,
              Verdict::kOutside)
        << mutant_name(mutant);
  }
}

} // namespace
} // namespace assay::oracle::test
