// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include "oracle/judge/explain.h"
#include "oracle/tests/campaign.h"

namespace assay::oracle::test {
namespace {

struct Fixture {
  RowData row;
  TileOrder order = deal_tiles(300, 16, 2, 2);
  RowProblem problem;
  Fixture() {
    std::mt19937_64 random(5);
    row = draw_row(Regime::kNormal, ASSAY_BF16, 300, 32, random);
    // Key 123 takes about half of the weight.
    for (int i = 0; i < 32; ++i)
      row.keys.k[123 * 32 + static_cast<size_t>(i)] = row.q[static_cast<size_t>(i)];
    row.keys.finish(ASSAY_BF16);
    problem.q = row.q;
    problem.keys = &row.keys;
    problem.sm_scale = 0.18f;
    problem.arithmetic = declared(Emulation{});
    problem.order = &order;
  }
};

TEST(Explain, NamesTheKeysThatMatter) {
  Fixture f;
  const Explanation e = explain_element(f.problem, 7);
  ASSERT_EQ(e.by_weight.size(), 5u);
  ASSERT_EQ(e.by_budget.size(), 5u);
  EXPECT_EQ(e.by_weight[0].key, 123);
  EXPECT_EQ(e.by_weight[0].value, f.row.keys.value(123)[7]);
  for (size_t i = 1; i < 5; ++i) {
    EXPECT_GE(e.by_weight[i - 1].weight, e.by_weight[i].weight);
    EXPECT_GE(e.by_budget[i - 1].t1, e.by_budget[i].t1);
  }
  EXPECT_TRUE(e.has_t1);
  const std::string text = format_explanation(e);
  EXPECT_NE(text.find("key 123"), std::string::npos);
  EXPECT_NE(text.find("T1 (rounding replay)"), std::string::npos);
}

TEST(Explain, PartsAddUpToTheBudget) {
  Fixture f;
  f.problem.order = nullptr;
  const int dim = 3;
  const RowReference row = attention_row(f.problem);
  const BudgetTerms &t = row.t0[dim];
  double sum = 0.0;
  const Explanation e = explain_element(f.problem, dim);
  for (const KeyInfluence &k : e.by_budget)
    sum += k.t0;
  const double keyed = t.weights + t.p_rounding + t.accumulation + t.merge;
  EXPECT_LE(sum, keyed * 1.01);
  EXPECT_GT(sum, 0.02 * keyed);
  EXPECT_NEAR(t.total, keyed + t.normalisation + t.output_rounding + t.flush, 1e-5 * t.total);
}

TEST(Explain, CoversLseEmptyAndNoClaim) {
  Fixture f;
  Explanation e = explain_element(f.problem, -1);
  EXPECT_GT(e.t0.total, 0.0);
  EXPECT_NE(format_explanation(e).find("LSE"), std::string::npos);
  KeySet none;
  none.head_dim = 32;
  none.finish(ASSAY_BF16);
  f.problem.keys = &none;
  f.problem.order = nullptr;
  EXPECT_TRUE(explain_element(f.problem, 0).empty);
  f.problem.keys = &f.row.keys;
  f.row.keys.v[40] = NAN;
  f.row.keys.finish(ASSAY_BF16);
  e = explain_element(f.problem, 0);
  EXPECT_FALSE(e.claim);
  EXPECT_NE(format_explanation(e).find("not finite"), std::string::npos);
}

} // namespace
} // namespace assay::oracle::test
