// SPDX-License-Identifier: Apache-2.0
// What every bound must be, whatever a kernel declares: finite or no claim, never negative, never
// NaN, and never smaller for a kernel that declares more.
#include <gtest/gtest.h>

#include <functional>

#include "oracle/tests/campaign.h"

namespace assay::oracle::test {
namespace {

std::vector<double> totals(const RowReference &row) {
  std::vector<double> all{row.lse_budget};
  for (const BudgetTerms &t : row.t0)
    all.push_back(t.total);
  return all;
}

/// Declared errors of any size below 1, each as it is by itself or all at once.
assay_arithmetic draw_declaration(std::mt19937_64 &random, assay_arithmetic a) {
  for (double *error :
       {&a.exp2_rel_error, &a.log2_abs_error, &a.rcp_rel_error, &a.tanh_abs_error, &a.q_abs_error})
    if (random() % 2) *error = std::ldexp(1.0 - 0x1p-20, -static_cast<int>(random() % 24));
  if (random() % 3 == 0) a.tile_tokens = 1 << random() % 9;
  if (random() % 3 == 0) a.sum_depth = 1 << random() % 21;
  if (random() % 3 == 0) a.max_parallel_states = 1 << random() % 8;
  if (random() % 2) a.p_format = static_cast<assay_format>(random() % 6);
  if (random() % 3 == 0) a.sum_format = random() % 2 ? ASSAY_FORMAT_FP16 : ASSAY_FORMAT_BF16;
  a.exponential = static_cast<assay_exponential>(random() % 2);
  return a;
}

TEST(Bounds, AreNumbersAndNeverNegativeForAnyDeclaration) {
  int claimed = 0;
  for (uint64_t number = 0; number < 1000ull * static_cast<uint64_t>(effort()); ++number) {
    std::mt19937_64 random(91000000 + number);
    const Case c = draw_case(random, 120);
    for (bool with_order : {false, true}) {
      RowProblem problem = c.problem(with_order);
      problem.arithmetic = draw_declaration(random, problem.arithmetic);
      const RowReference row = attention_row(problem);
      if (!row.claim) {
        EXPECT_FALSE(row.no_claim_reason.empty());
        continue;
      }
      ++claimed;
      for (double total : totals(row))
        ASSERT_TRUE(total >= 0.0) << "case " << number << ": " << total;
      for (const ReplayedRow *replay : {&row.t1, &row.t2})
        for (const BudgetTerms &t : replay->budget)
          ASSERT_TRUE(t.total >= 0.0) << "case " << number << ": " << t.total;
      ASSERT_TRUE(std::isfinite(row.lse_budget)) << "case " << number;
    }
  }
  EXPECT_GT(claimed, 1000);
}

TEST(Bounds, NeverShrinkWhenADeclaredErrorGrows) {
  using Set = std::function<void(assay_arithmetic &, double)>;
  const std::pair<const char *, Set> errors[] = {
      {"exp2", [](assay_arithmetic &a, double e) { a.exp2_rel_error = e; }},
      {"log2", [](assay_arithmetic &a, double e) { a.log2_abs_error = e; }},
      {"rcp", [](assay_arithmetic &a, double e) { a.rcp_rel_error = e; }},
      {"q", [](assay_arithmetic &a, double e) { a.q_abs_error = e; }},
      {"exp2 beside a narrow sum",
       [](assay_arithmetic &a, double e) {
         a.exp2_rel_error = e;
         a.sum_format = ASSAY_FORMAT_FP16;
       }},
      {"block", [](assay_arithmetic &a, double e) {
         a.mma_block = 16;
         a.mma_fraction_bits = static_cast<int>(6 - std::log2(e));
       }}};
  for (uint64_t number = 0; number < 100; ++number) {
    std::mt19937_64 random(92000000 + number);
    const Case c = draw_case(random, 300);
    for (const auto &[name, set] : errors)
      for (bool with_order : {false, true}) {
        std::vector<double> before;
        for (double e : {0x1p-24, 0x1p-20, 0x1p-16, 0x1p-12, 0x1p-8, 0x1p-6, 0x1p-4, 0.5, 0.99}) {
          RowProblem problem = c.problem(with_order);
          set(problem.arithmetic, e);
          const RowReference row = attention_row(problem);
          if (!row.claim) break;
          const std::vector<double> now = totals(row);
          for (size_t i = 0; i < before.size(); ++i)
            ASSERT_LE(before[i], now[i] * (1 + 0x1p-40))
                << "case " << number << " " << name << " " << e << " output " << i;
          before = now;
        }
      }
  }
}

/// A row of n equal keys with value 1: nothing changes with n but what n itself costs.
RowReference equal_keys(int n, float logit, double exp2_error) {
  KeySet keys;
  keys.head_dim = 16;
  keys.k.assign(static_cast<size_t>(n) * 16, 0.0f);
  keys.v.assign(static_cast<size_t>(n) * 16, 1.0f);
  for (int j = 0; j < n; ++j)
    keys.k[static_cast<size_t>(j) * 16] = 1.0f;
  keys.finish(ASSAY_BF16);
  std::vector<float> q(16, 0.0f);
  q[0] = logit;
  RowProblem problem;
  problem.q = q;
  problem.keys = &keys;
  problem.arithmetic = declared({});
  problem.arithmetic.exp2_rel_error = exp2_error;
  return attention_row(problem);
}

TEST(Bounds, NeverShrinkWithMoreKeysOrLargerLogits) {
  for (double error : {0x1p-22, 0x1p-10, 0x1p-5}) {
    double before = 0.0;
    for (int n : {1, 2, 3, 16, 17, 100, 1000, 4096}) {
      const RowReference row = equal_keys(n, 1.0f, error);
      EXPECT_GE(row.lse_budget, before) << n;
      before = row.lse_budget;
    }
    std::vector<double> last(17, 0.0);
    for (float logit : {0.0f, 1.0f, 16.0f, 1024.0f, 65536.0f, 1e6f, 1e7f}) {
      const std::vector<double> now = totals(equal_keys(100, logit, error));
      for (size_t i = 0; i < now.size(); ++i)
        EXPECT_GE(now[i], last[i]) << logit << " output " << i;
      last = now;
    }
  }
}

/// A row whose kernel uses up its declared errors as `change` says; the worst of all its ratios.
double worst_ratio(int n, int splits, const std::function<void(Emulation &)> &change) {
  double worst = 0.0;
  for (uint64_t number = 0; number < 20; ++number) {
    std::mt19937_64 random(93000000 + number);
    Case c;
    c.dtype = ASSAY_FP16; // its subnormal P is divided by the least row sum
    c.row = draw_row(Regime::kNormal, c.dtype, n, 64, random);
    c.sm_scale = 0.5f; // weights far below 1 too
    c.splits = splits;
    change(c.emulation);
    c.order = deal_tiles(n, c.emulation.tile, splits, c.emulation.states);
    const RowOutput out = c.run();
    for (bool with_order : {false, true}) {
      const Report report = c.judge(out, with_order);
      worst = std::max({worst, report.worst_ratio_t0, report.worst_ratio_lse});
      EXPECT_EQ(report.verdict, Verdict::kInside) << "row " << number << " order " << with_order;
      EXPECT_EQ(report.no_claim, 0u);
    }
  }
  return worst;
}

// Tiles times the declared error reach 1, where a first-order limit of the row sum would be
// negative.
TEST(Declared, ManyTilesWithACoarseExponential) {
  for (Noise noise : {Noise::kNone, Noise::kUp, Noise::kDown, Noise::kSkewed})
    worst_ratio(4096, 2, [&](Emulation &e) {
      e.tile = 16;
      e.exp2_error = 0.0078;
      e.noise = noise;
    });
}

// Always low by eps: every weight counts (1 - eps)^R, which is below 1 / (1 + Omega).
TEST(Declared, AnExponentialThatIsAlwaysLow) {
  for (double error : {0x1p-8, 0.1}) {
    const double ratio = worst_ratio(2048, 1, [&](Emulation &e) {
      e.tile = 2048;
      e.combine = false;
      e.exp2_error = error;
      e.noise = Noise::kDown;
    });
    EXPECT_GT(ratio, 0.9) << "the limit is used up, so the bound is near";
  }
}

// A split's reciprocal is an error of its numerator alone: splits whose errors differ in sign move
// an output by eps_r times the sum of |v|, not of |o|.
TEST(Declared, SplitsWithCoarseReciprocals) {
  worst_ratio(300, 5, [](Emulation &e) { e.rcp_error = 0x1p-5; });
}

TEST(Declared, MergesWithAnExponentialThatIsAlwaysLow) {
  for (double error : {0x1p-8, 0.1, 0.5})
    for (Noise noise : {Noise::kUp, Noise::kDown, Noise::kSkewed}) {
      std::mt19937_64 random(94000000);
      for (int row = 0; row < 50; ++row) {
        MergeProblem problem;
        problem.head_dim = 16;
        problem.dtype = ASSAY_FP32;
        problem.lse_base = row % 2 ? ASSAY_LSE_BASE_E : ASSAY_LSE_BASE_2;
        Emulation e;
        e.exp2_error = error;
        e.noise = noise;
        problem.arithmetic = declared(e);
        const int states = 2 + row % 20;
        for (int s = 0; s < states; ++s) {
          problem.lse.push_back(static_cast<float>(random() % 64) * (row % 3 ? 0.25f : 4.0f));
          for (int i = 0; i < 16; ++i)
            problem.o.push_back(static_cast<float>(random() % 201) * 0.01f - 1.0f);
        }
        const RowOutput out =
            emulate_merge(problem.o, problem.lse, 16, problem.dtype, problem.lse_base, e);
        const Report report = judge_row(problem, merge_row(problem), out.o.data(), &out.lse, 0, 0);
        EXPECT_EQ(report.verdict, Verdict::kInside) << error << " row " << row;
      }
    }
}

// LSEs as far apart as fp32 goes: a weight of 0 times an infinite error is no number.
TEST(Bounds, OfStatesThatAreFarApartAreNumbers) {
  MergeProblem problem;
  problem.head_dim = 1;
  problem.arithmetic = declared({});
  problem.lse = {3e38f, -3e38f, 0.0f};
  problem.o = {1.0f, 2.0f, 3.0f};
  const MergeReference reference = merge_row(problem);
  EXPECT_TRUE(std::isfinite(reference.row.t0[0].total));
  EXPECT_TRUE(std::isfinite(reference.row.lse_budget));
  EXPECT_LT(reference.row.t0[0].total, 0.01);
}

} // namespace
} // namespace assay::oracle::test
