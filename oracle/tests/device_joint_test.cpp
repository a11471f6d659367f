// SPDX-License-Identifier: Apache-2.0
// Rows as one by the text that a GPU runs, run here: ratios are the host's, and what no element
// shows is left to the host.
#include "oracle/device/groups_along.h"
#include "oracle/tests/bent_call.h"
#include "oracle/tests/other_calls.h"

namespace assay::oracle {
namespace {

using test::HostMemory;
using test::RandomCall;

TierReport judged_here(const RandomCall &call) {
  return judge_tiers_here(call.rows, call.outputs(), call.model, {.elements = true});
}

TEST(TiersAsOne, SayWhatTheHostSays) {
  std::mt19937 random(41);
  test::TiersCompared all;
  for (int i = 0; i < 24; ++i) {
    HostMemory memory;
    const test::BentCall bent(random, memory);
    const test::TiersCompared one = compare_tiers(bent.call, judged_here(bent.call));
    expect_agreement(one, i);
    all.add(one);
  }
  EXPECT_GT(all.as_one, 240u);
  EXPECT_GT(all.near, 24u);
  EXPECT_LT(all.near * 2, all.as_one);
  EXPECT_GT(all.rows, all.inside + 40); // there are some of each
}

TEST(TiersAsOne, OfCallsOfOtherTypesSayWhatTheHostSays) {
  for (const test::Other other : test::kOthers) {
    std::mt19937 random(43);
    test::TiersCompared all;
    for (int i = 0; i < 6; ++i) {
      HostMemory memory;
      test::Options o = options_for(other, random);
      o.tile = 0;
      RandomCall call(o, random(), memory);
      test::OtherCall(call, random(), memory).make(other);
      bend(call, random);
      const test::TiersCompared one = compare_tiers(call, judged_here(call));
      expect_agreement(one, i);
      all.add(one);
    }
    EXPECT_GT(all.as_one, 4u) << static_cast<int>(other);
  }
}

/// Rows of many units, and weights of which next to nothing is known: the farthest value decides.
TEST(TiersAsOne, OfSeveralUnitsSayWhatTheHostSays) {
  std::mt19937 random(53);
  for (const float exp2_error : {0x1p-22f, 0x1p-9f, 0x1p-3f}) {
    HostMemory memory;
    test::Options o;
    o.lengths = {2500, 100};
    o.group = 4;
    RandomCall call(o, random(), memory);
    call.model.arithmetic.exp2_rel_error = exp2_error;
    call.fill();
    bend(call, random);
    const test::TiersCompared one = compare_tiers(call, judged_here(call));
    expect_agreement(one, 0);
    EXPECT_GE(one.as_one, 8u);
  }
}

/// With an order, whose weights are so uncertain that there is nothing to replay.
TEST(TiersAsOne, OfRowsThatCannotBeReplayedSayWhatTheHostSays) {
  std::mt19937 random(59);
  for (const bool scores : {false, true}) {
    HostMemory memory;
    test::Options o;
    o.lengths = {300, 64, 3};
    o.tile = 64;
    o.replay_scores = scores;
    RandomCall call(o, random(), memory);
    call.model.arithmetic.exp2_rel_error = 0.25f;
    call.fill();
    bend(call, random);
    const TierReport report = judged_here(call);
    EXPECT_TRUE(std::isnan(report.decided.worst_ratio_t1));
    const test::TiersCompared one = compare_tiers(call, report);
    expect_agreement(one, scores);
    EXPECT_GE(one.as_one, 8u);
  }
}

TEST(TiersAsOne, SumsOfUnitsAreThoseOfAllKeys) {
  device::PairWork pair{};
  pair.along = {.o = 0.5, .blur = 0.01};
  pair.joint.p_unit = 0.25;
  const JointKey keys[] = {{0.1, 0.5, 0.02}, {0.2, 0.3, 0.03}, {0.3, 0.2, 0.0}, {0.0, 0.1, 0.1}};
  const double values[] = {1.0, -7.0, 2.0, 6.9};
  device::AlongSums all, parts[2];
  for (int i = 0; i < 4; ++i) {
    all.add(pair, keys[i], 0.25 * i, values[i]);
    parts[i / 2].add(pair, keys[i], 0.25 * i, values[i]);
  }
  for (const int first : {0, 1}) {
    device::AlongSums joined;
    joined.join(parts[first]);
    joined.join(parts[1 - first]);
    EXPECT_NEAR(joined.sums.errors, all.sums.errors, 1e-15);
    EXPECT_NEAR(joined.sums.shares, all.sums.shares, 1e-15);
    EXPECT_NEAR(joined.sums.subnormal, all.sums.subnormal, 1e-15);
    EXPECT_EQ(joined.sums.farthest, 7.51);
    EXPECT_EQ(joined.sums.moved, 7.01);
    EXPECT_NEAR(joined.rounding, 0.15, 1e-15);
    EXPECT_EQ(joined.alignment, 1.5);
  }
}

/// The rows of a call that a factor of 1.01 makes wrong, and no element shows it.
TEST(TiersAsOne, LeaveToTheHostWhatNoElementShows) {
  HostMemory memory;
  test::Options o;
  o.lengths = {300, 700, 513};
  RandomCall call(o, 3, memory);
  const TierReport right = judged_here(call);
  ASSERT_TRUE(right.open.empty());
  EXPECT_GT(right.decided.worst_ratio_row, 0.0);
  EXPECT_LT(right.decided.worst_ratio_row, 0.5);
  bend(call, 1, 5, 1.012);
  const TierReport wrong = judged_here(call);
  ASSERT_EQ(wrong.open.size(), 1u);
  EXPECT_EQ(wrong.open[0].row, 1);
  EXPECT_EQ(wrong.open[0].head, 5);
  const TierRow &row = wrong.rows[static_cast<size_t>(call.rows.out.heads + 5)];
  EXPECT_LT(row.worst[0], 1.0);
  EXPECT_TRUE(std::isinf(row.worst[4]));
  const Report host = judge_one(call.rows, call.outputs(), call.model, 1, 5);
  EXPECT_EQ(host.verdict, Verdict::kOutside);
  EXPECT_EQ(host.worst.dim, ElementReport::kRow);
}

TEST(TiersAsOne, NameThoseThatAreNearlyOutsideTheLargestFirst) {
  std::mt19937 random(5);
  size_t named = 0;
  for (int i = 0; i < 20; ++i) {
    HostMemory memory;
    const test::BentCall bent(random, memory);
    const TierReport report = judged_here(bent.call);
    const auto row_at = [&](const RowHead &at) -> const TierRow & {
      return report.rows[static_cast<size_t>(at.row * bent.call.rows.out.heads + at.head)];
    };
    size_t near = 0;
    for (const TierRow &row : report.rows)
      near += row.inside != 0 && row.near != 0;
    EXPECT_EQ(report.near.size(), near);
    for (size_t at = 1; at < report.near.size(); ++at)
      EXPECT_GE(row_at(report.near[at - 1]).worst[4], row_at(report.near[at]).worst[4]);
    named += report.near.size();
  }
  EXPECT_GT(named, 20u);
}

/// States of large O, whose errors a factor makes alike: merged in a type of 16 bits, or in fp32.
TEST(TiersAsOne, OfMergesSayWhatTheHostSays) {
  std::mt19937 random(7);
  test::TiersCompared all;
  for (unsigned seed = 0; seed < 200; ++seed) {
    HostMemory memory;
    test::RandomMerge call(seed, memory);
    bend(call, random);
    const test::TiersCompared one =
        compare_merges(call, judge_merges_here(call.rows, call.outputs(), call.model, true));
    if (one.elements > 0) expect_agreement(one, static_cast<int>(seed));
    all.add(one);
  }
  EXPECT_GT(all.as_one, 300u);
  EXPECT_GT(all.near, 30u);
  EXPECT_GT(all.rows, all.inside + 30);
}

} // namespace
} // namespace assay::oracle
