// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include "oracle/exact/dtype.h"
#include "oracle/tests/campaign.h"

namespace assay::oracle::test {
namespace {

struct MergeCase {
  MergeProblem problem;
  Emulation emulation;
  RowOutput run() const {
    return emulate_merge(problem.o, problem.lse, problem.head_dim, problem.dtype, problem.lse_base,
                         emulation);
  }
  Report judge(const RowOutput &out) const {
    return judge_row(problem, merge_row(problem), out.o.data(), &out.lse, 0, 0);
  }
};

MergeCase draw_merge(std::mt19937_64 &random) {
  std::normal_distribution<float> normal;
  const auto pick = [&](int limit) {
    return static_cast<int>(random() % static_cast<uint64_t>(limit));
  };
  MergeCase c;
  MergeProblem &p = c.problem;
  p.head_dim = 8 << pick(4);
  p.dtype = static_cast<assay_dtype>(pick(3));
  p.lse_base = pick(2) ? ASSAY_LSE_BASE_2 : ASSAY_LSE_BASE_E;
  c.emulation.noise = static_cast<Noise>(pick(4));
  c.emulation.seed = random();
  p.arithmetic = declared(c.emulation);
  const int states = pick(4) == 0 ? pick(3) : 2 + pick(30);
  const float spread = std::ldexp(1.0f, pick(16) - 6),
              offset = pick(3) ? 0.0f : 1e5f * normal(random);
  const float size = std::ldexp(1.0f, p.dtype == ASSAY_FP16 ? pick(30) - 20 : pick(60) - 30);
  for (int s = 0; s < states; ++s) {
    p.lse.push_back(pick(6) ? spread * normal(random) + offset : -INFINITY);
  }
  const Format &format = format_of(p.dtype);
  for (int i = 0; i < states * p.head_dim; ++i) {
    const double x =
        std::clamp<double>(size * normal(random), -format.max_finite, format.max_finite);
    p.o.push_back(static_cast<float>(round_to(format, x)));
  }
  // What an empty state holds must not matter.
  for (int s = 0; s < states; ++s) {
    if (p.lse[static_cast<size_t>(s)] == -INFINITY) {
      p.o[static_cast<size_t>(s * p.head_dim)] = NAN;
    }
  }
  return c;
}

TEST(Merge, CorrectKernelIsNeverOutside) {
  uint64_t outputs = 0;
  double worst = 0.0, worst_lse = 0.0;
  for (int number = 0; number < 6000 * effort(); ++number) {
    std::mt19937_64 random(31000000 + static_cast<uint64_t>(number));
    const MergeCase c = draw_merge(random);
    const Report report = c.judge(c.run());
    ASSERT_EQ(report.verdict, Verdict::kInside)
        << "case " << number << " states " << c.problem.states() << " dim " << report.worst.dim
        << " ratio " << report.worst.ratio << " " << reason_text(report.worst.reason);
    outputs += report.claimed;
    worst = std::max(worst, report.worst_ratio_t0);
    if (!std::isnan(report.worst_ratio_lse))
      worst_lse = std::max(worst_lse, report.worst_ratio_lse);
  }
  printf("outputs %lu worst %.4f lse %.4f\n", outputs, worst, worst_lse);
  EXPECT_GT(outputs, 30000u);
}

TEST(Merge, WrongKernelsAreCaught) {
  for (Mutant mutant :
       {Mutant::kMergeIgnoresMaxima, Mutant::kMergeMixesBases, Mutant::kMergeNormaliserOff}) {
    int caught = 0;
    for (int number = 0; number < 200; ++number) {
      std::mt19937_64 random(400 + static_cast<uint64_t>(number));
      MergeCase c = draw_merge(random);
      c.emulation.mutant = mutant;
      const RowOutput out = c.run();
      caught += c.judge(out).verdict == Verdict::kOutside;
    }
    printf("%-32s caught %d of 200\n", mutant_name(mutant), caught);
    EXPECT_GT(caught, 100) << mutant_name(mutant);
  }
}

/// With a coarse exponential one state counts 3 per mille too much: no element shows it.
TEST(Merge, ARowIsOutsideWhereNoElementIs) {
  int rows = 0;
  for (uint64_t seed = 0; seed < 50; ++seed) {
    std::mt19937_64 random(seed);
    std::normal_distribution<float> normal;
    MergeCase c;
    c.problem.head_dim = 128;
    c.emulation.exp2_error = 0x1p-12;
    c.problem.arithmetic = declared(c.emulation);
    for (int s = 0; s < 16; ++s)
      c.problem.lse.push_back(normal(random));
    for (int i = 0; i < 16 * 128; ++i)
      c.problem.o.push_back(normal(random));
    MergeCase wrong = c;
    wrong.problem.lse[3] += 3e-3f;
    RowOutput out = wrong.run();
    out.lse = c.run().lse;
    const Report report = c.judge(out);
    rows += report.worst.dim == ElementReport::kRow && report.verdict == Verdict::kOutside;
  }
  EXPECT_GT(rows, 10);
}

MergeCase two_states(float lse_a, float lse_b) {
  MergeCase c;
  c.problem.head_dim = 8;
  c.problem.arithmetic = declared({});
  c.problem.lse = {lse_a, lse_b};
  for (int i = 0; i < 16; ++i)
    c.problem.o.push_back(0.1f * static_cast<float>(i) - 0.7f);
  return c;
}

TEST(Merge, OneLiveStateMustComeBackBitForBit) {
  const MergeCase c = two_states(0.3f, -INFINITY);
  RowOutput out = c.run();
  EXPECT_EQ(c.judge(out).verdict, Verdict::kInside);
  out.o[3] = std::nextafter(out.o[3], 1.0f);
  EXPECT_EQ(c.judge(out).verdict, Verdict::kOutside);
  out = c.run();
  out.lse = std::nextafter(out.lse, 1.0f);
  EXPECT_EQ(c.judge(out).verdict, Verdict::kOutside);
}

TEST(Merge, AllEmptyIsZeroAndMinusInfinity) {
  const MergeCase c = two_states(-INFINITY, -INFINITY);
  RowOutput out{std::vector<float>(8, 0.0f), -INFINITY};
  EXPECT_EQ(c.judge(out).verdict, Verdict::kInside);
  out.o[7] = NAN;
  EXPECT_EQ(c.judge(out).verdict, Verdict::kOutside);
  out.o[7] = 0.0f;
  out.lse = 0.0f;
  EXPECT_EQ(c.judge(out).verdict, Verdict::kOutside);
}

TEST(Merge, NonFiniteLiveStatesMakeNoClaim) {
  MergeCase c = two_states(0.3f, 0.1f);
  c.problem.o[9] = INFINITY;
  const Report report = c.judge({std::vector<float>(8, 7.0f), 1.0f});
  EXPECT_EQ(report.verdict, Verdict::kInside);
  EXPECT_EQ(report.claimed, 0u);
  EXPECT_EQ(report.no_claim, 9u);
}

} // namespace
} // namespace assay::oracle::test
