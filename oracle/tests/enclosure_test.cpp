// SPDX-License-Identifier: Apache-2.0
// The fast path against interval arithmetic: every radius is honest, and a dishonest one is seen.
#include <gtest/gtest.h>

#include <thread>

#include "oracle/bounds/replay.h"
#include "oracle/judge/certify.h"
#include "oracle/tests/campaign.h"

namespace assay::oracle::test {
namespace {

constexpr int kPrecision = 256;

struct Misses {
  uint64_t values = 0, honest = 0, tightened = 0;
  void check(const Enclosure &fast, const Interval &certified) {
    ++values;
    honest += !encloses(fast, certified);
    tightened += !encloses({fast.mid, fast.rad * 1e-6}, certified);
  }
};

void check_row(const Case &c, Misses &misses) {
  const RowProblem problem = c.problem(true);
  const RowReference row = attention_row(problem);
  if (!row.claim || row.empty) return;
  const CertifiedRow certified(problem, kPrecision);
  misses.check(row.lse, certified.lse());
  for (int i = 0; i < problem.keys->head_dim; i += 5) {
    misses.check(row.o[static_cast<size_t>(i)], certified.output(i));
  }
  if (!row.t1.applies()) return;
  RowWork work;
  prepare_row(problem, work);
  KeyReplay replay;
  ReplayBudget budget;
  replay_keys(problem, work, replay, budget);
  for (int i = 0; i < problem.keys->head_dim; i += 5) {
    misses.check(row.t1.o[static_cast<size_t>(i)],
                 certified.replayed_output(replay.p, replay.shift, work.x_max, i));
  }
}

TEST(Enclosure, HoldsTheCertifiedValueInEveryRegime) {
  Misses misses;
  for (int number = 0; number < 80 * effort(); ++number) {
    std::mt19937_64 random(5000 + static_cast<uint64_t>(number));
    const Case c = draw_case(random, 120);
    const uint64_t before = misses.honest;
    check_row(c, misses);
    EXPECT_EQ(misses.honest, before) << "case " << number << " " << regime_name(c.regime);
  }
  printf("values %lu, outside %lu; with radii 1e-6 as large: outside %lu\n", misses.values,
         misses.honest, misses.tightened);
  EXPECT_EQ(misses.honest, 0u);
  // The comparison must be able to fail: radii a million times too small are no enclosures.
  EXPECT_GT(misses.tightened, misses.values / 4);
}

TEST(Enclosure, MergeHoldsTheCertifiedValue) {
  Misses misses;
  std::mt19937_64 random(9);
  std::normal_distribution<float> normal;
  for (int number = 0; number < 100; ++number) {
    MergeProblem problem;
    problem.head_dim = 16;
    problem.lse_base = number % 2 ? ASSAY_LSE_BASE_2 : ASSAY_LSE_BASE_E;
    problem.arithmetic = declared({});
    const int states = 2 + static_cast<int>(random() % 9);
    const float spread = std::ldexp(1.0f, static_cast<int>(random() % 12) - 4);
    for (int s = 0; s < states; ++s) {
      problem.lse.push_back(spread * normal(random) + (number % 3 ? 0.0f : 1e4f));
    }
    for (int i = 0; i < states * 16; ++i)
      problem.o.push_back(normal(random));
    const MergeReference reference = merge_row(problem);
    for (int i = 0; i < 16; ++i) {
      misses.check(reference.row.o[static_cast<size_t>(i)],
                   certified_merge(problem, i, kPrecision));
    }
    misses.check(reference.row.lse, certified_merge(problem, -1, kPrecision));
  }
  EXPECT_EQ(misses.honest, 0u);
  EXPECT_GT(misses.tightened, misses.values / 4);
}

TEST(Enclosure, RadiusIsFarBelowTheBudget) {
  for (int number = 0; number < 60; ++number) {
    std::mt19937_64 random(100 + static_cast<uint64_t>(number));
    const Case c = draw_case(random, 300);
    const RowReference row = attention_row(c.problem(true));
    for (size_t i = 0; i < row.o.size() && row.claim; ++i) {
      EXPECT_LT(row.o[i].rad, 1e-4 * row.t0[i].total) << regime_name(c.regime);
    }
  }
}

TEST(Decide, EscalatesWhenTheRadiusIsInTheWay) {
  // 1/3 known to 1e-3 only; the bound's edge falls inside that radius.
  const auto certified = [](int precision) {
    Interval third(precision, 1.0);
    third /= Interval(precision, 3.0);
    return third;
  };
  const Enclosure vague{0.3335, 1e-3};
  const double gap = std::fabs(0.5f - 1.0 / 3.0);
  Decision d = decide(0.5f, vague, gap * (1 + 1e-9), certified);
  EXPECT_EQ(d.verdict, Verdict::kInside);
  EXPECT_TRUE(d.escalated);
  d = decide(0.5f, vague, gap * (1 - 1e-9), certified);
  EXPECT_EQ(d.verdict, Verdict::kOutside);
  EXPECT_TRUE(d.escalated);
  EXPECT_FALSE(decide(0.5f, vague, 0.5, certified).escalated);
  EXPECT_FALSE(decide(0.5f, vague, 0.1, certified).escalated);
}

// A reference known too vaguely, for every tier: the certified value must take over.
TEST(Decide, EveryTierEscalates) {
  for (uint64_t number = 0; number < 12; ++number) {
    std::mt19937_64 random(700 + number);
    Case c = draw_case(random, 60);
    c.emulation.low_subnormals = true;
    c.emulation.block = 16;
    const RowProblem problem = c.problem(true);
    RowReference row = attention_row(problem);
    if (!row.claim || !row.t2.applies()) continue;
    RowOutput out = c.run();
    const auto blur = [](Enclosure &e, double bound) { e.rad = bound; };
    const size_t dims = row.o.size();
    for (size_t i = 0; i < dims; ++i) {
      blur(row.o[i], row.t0[i].total);
      blur(row.t1.o[i], row.t1.budget[i].total);
      blur(row.t2.o[i], row.t2.budget[i].total);
    }
    blur(row.lse, row.lse_budget);
    blur(row.t2.lse, row.t2.lse_budget);
    Report report = judge_row(problem, row, out.o.data(), &out.lse, 0, 0);
    EXPECT_EQ(report.verdict, Verdict::kInside) << reason_text(report.worst.reason);
    EXPECT_EQ(report.escalated, 3 * dims + 2);
    const BudgetTerms &sharp = row.t2.budget[0];
    const float far = static_cast<float>(1.5 * sharp.total);
    out.o[0] = static_cast<float>(row.t2.o[0].mid) + far;
    report = judge_row(problem, row, out.o.data(), &out.lse, 0, 0);
    EXPECT_EQ(report.verdict, Verdict::kOutside);
  }
}

TEST(Decide, StaysUndecidedRatherThanPass) {
  // A reference that no precision resolves: it always straddles the bound.
  const auto stubborn = [](int precision) {
    Interval wide(precision, 0.0);
    Interval pi(precision, 1.0);
    pi /= Interval(precision, 3.0);
    wide += pi;
    wide -= pi;
    return wide;
  };
  const Decision d = decide(0.0f, {0.0, 1e-3}, 0.0, stubborn);
  EXPECT_EQ(d.verdict, Verdict::kUndecided);
}

// The sample that every verdict carries: right enclosures pass, and one that is off by a little
// more than its radius does not, in any tier.
TEST(Certification, PassesEveryRegimeAndSeesAWrongEnclosure) {
  constexpr int kDims[] = {0, 7, 15};
  uint64_t tiers[3] = {0, 0, 0};
  for (int number = 0; number < 20 * effort(); ++number) {
    std::mt19937_64 random(8100 + static_cast<uint64_t>(number));
    const Case c = draw_case(random, 60);
    const RowProblem problem = c.problem(true);
    const RowReference row = attention_row(problem);
    if (!row.claim || row.empty) continue;
    const Certification right = certify_row(problem, row, kDims);
    EXPECT_GE(right.values, 4u);
    EXPECT_EQ(right.misses, 0u) << right.first_miss;
    const auto off = [](Enclosure &e) { e.mid += 2.5 * e.rad + 1e-12 * std::fabs(e.mid); };
    const auto expect_seen = [&](const RowReference &wrong, int tier, const char *what) {
      const Certification seen = certify_row(problem, wrong, kDims);
      EXPECT_EQ(seen.misses, 1u) << "case " << number << " tier " << tier;
      EXPECT_NE(seen.first_miss.find(what), std::string::npos) << seen.first_miss;
      ++tiers[tier];
    };
    RowReference wrong = row;
    off(wrong.o[7]);
    expect_seen(wrong, 0, "dim 7 of tier 0");
    wrong = row;
    off(wrong.lse);
    expect_seen(wrong, 0, "LSE of tier 0");
    wrong = row;
    if (wrong.t1.applies()) off(wrong.t1.o[15]), expect_seen(wrong, 1, "dim 15 of tier 1");
    wrong = row;
    if (wrong.t2.applies()) off(wrong.t2.lse), expect_seen(wrong, 2, "LSE of tier 2");
  }
  for (uint64_t n : tiers)
    EXPECT_GT(n, 10u);
}

TEST(Certification, SeesAWrongMerge) {
  MergeProblem problem;
  problem.head_dim = 8;
  problem.arithmetic = declared({});
  problem.lse = {0.5f, 2.0f, -INFINITY};
  for (int i = 0; i < 24; ++i)
    problem.o.push_back(0.1f * static_cast<float>(i));
  constexpr int kDims[] = {0, 3};
  MergeReference reference = merge_row(problem);
  EXPECT_EQ(certify_row(problem, reference, kDims).misses, 0u);
  EXPECT_EQ(certify_row(problem, reference, kDims).values, 3u);
  reference.row.o[3].mid += 1e-12;
  EXPECT_EQ(certify_row(problem, reference, kDims).misses, 1u);
}

// Under AddressSanitizer (ci/test.sh) the leak check at exit is the verdict: a thread that computed
// in interval arithmetic leaves none of MPFR's caches behind.
TEST(Enclosure, AThreadTakesItsCachesWithIt) {
  double width = 1;
  std::thread([&] { width = Interval(kPrecision, 0.5).apply_exp2().apply_log2().width(); }).join();
  EXPECT_LT(width, 0x1p-200);
}

TEST(Enclosure, AValueOnItsEndIsInside) {
  Interval third(256, 1.0); // 16, a little wider than a point
  third /= Interval(256, 3.0);
  third *= 48.0;
  ASSERT_GT(third.width(), 0);
  EXPECT_TRUE(encloses({0, 16}, third));
  EXPECT_FALSE(encloses({0, 0x1.fffffffffffffp3}, third));
  EXPECT_FALSE(encloses({0, 15.9}, third));
}

} // namespace
} // namespace assay::oracle::test
