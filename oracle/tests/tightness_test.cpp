// SPDX-License-Identifier: Apache-2.0
// How sharp the bounds are and what they cost.
#include <gtest/gtest.h>

#include <algorithm>
#include <chrono>

#include "oracle/tests/campaign.h"

namespace assay::oracle::test {
namespace {

double median(std::vector<double> values) {
  std::nth_element(values.begin(), values.begin() + static_cast<int64_t>(values.size() / 2),
                   values.end());
  return values[values.size() / 2];
}

struct Setting {
  assay_dtype dtype;
  int n, tile, splits, states;
  int p_parts = 1;
};

struct Tightness {
  double t0, t1, ratio, ambiguous;
};

void print_terms(const char *tier, const std::vector<BudgetTerms> &terms) {
  const auto column = [&](double BudgetTerms::*member) {
    std::vector<double> values;
    for (const BudgetTerms &t : terms)
      values.push_back(t.*member);
    return median(values);
  };
  printf("    %s weights %.1e P %.1e accumulation %.1e normalise %.1e merge %.1e output %.1e\n",
         tier, column(&BudgetTerms::weights), column(&BudgetTerms::p_rounding),
         column(&BudgetTerms::accumulation), column(&BudgetTerms::normalisation),
         column(&BudgetTerms::merge), column(&BudgetTerms::output_rounding));
}

Tightness measure(const Setting &s) {
  std::vector<double> t0, t1, t2, ratio;
  std::vector<BudgetTerms> terms0, terms1, terms2;
  double ambiguous = 0.0;
  constexpr int kRuns = 4;
  for (int run = 0; run < kRuns; ++run) {
    std::mt19937_64 random(60 + static_cast<uint64_t>(run));
    const RowData row = draw_row(Regime::kNormal, s.dtype, s.n, 128, random);
    Emulation emulation;
    emulation.tile = s.tile;
    emulation.states = s.states;
    emulation.p_parts = s.p_parts;
    const TileOrder order = deal_tiles(s.n, s.tile, s.splits, s.states, s.p_parts);
    RowProblem problem;
    problem.q = row.q;
    problem.keys = &row.keys;
    problem.dtype = s.dtype;
    problem.sm_scale = 1.0f / std::sqrt(128.0f);
    problem.arithmetic = declared(emulation);
    problem.order = &order;
    problem.replay_scores = true;
    problem.combine_stages = s.splits > 1;
    const RowReference reference = attention_row(problem);
    ambiguous += reference.t1.ambiguous_fraction / kRuns;
    for (size_t i = 0; i < 128; ++i) {
      t0.push_back(reference.t0[i].total);
      t1.push_back(reference.t1.budget[i].total);
      t2.push_back(reference.t2.budget[i].total);
      ratio.push_back(t0.back() / t1.back());
      terms0.push_back(reference.t0[i]);
      terms1.push_back(reference.t1.budget[i]);
      terms2.push_back(reference.t2.budget[i]);
    }
  }
  const Tightness result{median(t0), median(t1), median(ratio), ambiguous};
  printf("%s n %5d tile %2d splits %2d states %d: T0 %.2e T1 %.2e ratio %5.1f ambiguous %.2f %%\n",
         s.dtype == ASSAY_BF16 ? "bf16" : "fp16", s.n, s.tile, s.splits, s.states, result.t0,
         result.t1, result.ratio, 100 * result.ambiguous);
  print_terms("T0", terms0);
  print_terms("T1", terms1);
  print_terms("T2", terms2);
  printf("    T0/T2 %.1f\n", result.t0 / median(t2));
  return result;
}

TEST(Tightness, ReplayIsFarSharperThanTheOrderFreeBound) {
  EXPECT_GE(measure({ASSAY_BF16, 1000, 64, 1, 1}).ratio, 15.0);
  EXPECT_GE(measure({ASSAY_BF16, 1000, 16, 2, 4}).ratio, 15.0);
  EXPECT_GE(measure({ASSAY_BF16, 4096, 64, 8, 1}).ratio, 15.0);
  EXPECT_GE(measure({ASSAY_BF16, 4096, 16, 8, 4}).ratio, 15.0);
  EXPECT_GE(measure({ASSAY_BF16, 16384, 64, 16, 4}).ratio, 15.0);
  EXPECT_GE(measure({ASSAY_FP16, 4096, 64, 8, 1}).ratio, 4.0);
}

// Every key is ambiguous then, by a little: as sharp as one rounding that is mostly known.
TEST(Tightness, ReplayOfTwoPartsIsAsSharp) {
  EXPECT_GE(measure({ASSAY_BF16, 1000, 16, 2, 4, 2}).ratio, 15.0);
  EXPECT_GE(measure({ASSAY_BF16, 4096, 16, 8, 4, 2}).ratio, 15.0);
  EXPECT_GE(measure({ASSAY_FP16, 4096, 64, 8, 1, 2}).ratio, 4.0);
}

TEST(Speed, EightHeadsOfFourThousandKeys) {
  std::mt19937_64 random(1);
  RowData row = draw_row(Regime::kNormal, ASSAY_BF16, 4096, 128, random);
  const TileOrder order = deal_tiles(4096, 64, 8, 4);
  RowProblem problem;
  problem.keys = &row.keys;
  problem.sm_scale = 1.0f / std::sqrt(128.0f);
  problem.arithmetic = declared(Emulation{});
  problem.order = &order;
  problem.q = row.q;
  for (bool bits : {false, true}) {
    problem.replay_scores = bits;
    const auto start = std::chrono::steady_clock::now();
    for (int head = 0; head < 8; ++head) {
      const RowReference reference = attention_row(problem);
      ASSERT_TRUE(reference.t1.applies());
      ASSERT_EQ(reference.t2.applies(), bits);
    }
    const double seconds =
        std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
    printf("8 heads, 4096 keys, d 128, T0 + T1 + LSE%s: %.3f s\n", bits ? " + T2" : "", seconds);
  }
}

} // namespace
} // namespace assay::oracle::test
