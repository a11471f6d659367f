// SPDX-License-Identifier: Apache-2.0
// Formats of Q behind its scale, of products and partial sums of scores, of tf32 operands, and of O
// before its last rounding: rows whose roundings use up what is declared are inside, and outside
// where one field is left out.
#include <gtest/gtest.h>

#include <cmath>
#include <functional>

#include "oracle/tests/campaign.h"

namespace assay::oracle::test {
namespace {

using A = assay_arithmetic;
constexpr int kDim = 64;

/// Two keys of fp32 and a query, with all elements of each alike. The second key is 0, so the
/// kernel's output is known from its score of the first: values are 1 and 0.
struct TwoKeys {
  std::vector<float> q;
  KeySet keys;
  RowProblem problem;

  TwoKeys(float query, float key, float logit) : q(kDim, query) {
    keys.head_dim = kDim;
    keys.k.assign(2 * kDim, 0.0f);
    std::fill_n(keys.k.begin(), kDim, key);
    keys.v.assign(2 * kDim, 0.0f);
    std::fill_n(keys.v.begin(), kDim, 1.0f);
    problem.sm_scale = static_cast<float>(logit / (kLog2E * score()));
    problem.dtype = ASSAY_FP32;
    problem.combine_stages = 0;
    problem.arithmetic.exponential = ASSAY_EXP_BASE2;
    problem.arithmetic.exp2_rel_error = problem.arithmetic.rcp_rel_error = 0x1p-22;
    problem.arithmetic.tile_tokens = 1024;
  }
  double score() const {
    double sum = 0.0;
    for (size_t i = 0; i < kDim; ++i)
      sum += static_cast<double>(q[i]) * keys.k[i];
    return sum;
  }
  double scale() const { return problem.sm_scale * kLog2E; }
  RowReference reference() {
    keys.finish(problem.operand());
    problem.q = q;
    problem.keys = &keys;
    return attention_row(problem);
  }
  bool allows(double o) {
    const RowReference row = reference();
    return row.claim && !row.t0[0].overflow_possible &&
           std::fabs(o - row.o[0].mid) <= row.o[0].rad + row.t0[0].total;
  }
  /// A kernel that has `score` for the first key is inside.
  bool allows_score(double score) { return allows(1.0 / (1.0 + std::exp2(-scale() * score))); }
};

/// Inside with the field, outside without.
void expect_declared(TwoKeys row, assay_format A::*field, assay_format format, double score) {
  EXPECT_FALSE(row.allows_score(score));
  row.problem.arithmetic.*field = format;
  EXPECT_TRUE(row.allows_score(score));
}

constexpr float kAboveOne = 1.0f + 0x1p-8f - 0x1p-20f; // 1 in bf16, as far off as may be

TEST(Products, QueriesAreRoundedRelatively) {
  const TwoKeys row(kAboveOne, 1.0f, 2.0f);
  expect_declared(row, &A::q_format, ASSAY_FORMAT_BF16, kDim);
  TwoKeys finer = row;
  finer.problem.arithmetic.q_format = ASSAY_FORMAT_FP16;
  EXPECT_FALSE(finer.allows_score(kDim));
}

// Times a scale of about 2^-20 these are subnormal in fp16: 2^-20 (1 + 2^-5) becomes 2^-20.
TEST(Products, ScaledQueriesAreSubnormalWhereTheScaleMakesThemSo) {
  TwoKeys row(1.0f, 0x1p15f, 1.0f);
  const float scale = row.problem.sm_scale;
  const auto steps = std::floor(scale * 0x1p24f);
  for (float &x : row.q)
    x = (steps + 0.49f) * 0x1p-24f / scale;
  expect_declared(row, &A::q_format, ASSAY_FORMAT_FP16,
                  kDim * 0x1p15 * static_cast<double>(steps * 0x1p-24f / scale));
}

// 2^-24 in fp16, aligned as 2^-14: a block that keeps 9 bits keeps nothing of its products.
TEST(Products, SubnormalQueriesAlignAsTheirFormatDoes) {
  TwoKeys row(0x1p-24f, 1.0f, 0.1f);
  A &a = row.problem.arithmetic;
  a.mma_block = 16, a.mma_fraction_bits = 9;
  const double lost = std::log1p(std::exp2(row.scale() * row.score())) - kLn2; // of the LSE
  EXPECT_LT(row.reference().lse_budget, lost);
  a.q_format = ASSAY_FORMAT_FP16;
  EXPECT_GT(row.reference().lse_budget, lost);
}

TEST(Products, AreRoundedOneByOne) {
  expect_declared({1.0f, kAboveOne, 2.0f}, &A::product_format, ASSAY_FORMAT_BF16, kDim);
  expect_declared({1.0f, kAboveOne, 2.0f}, &A::qk_sum_format, ASSAY_FORMAT_BF16, kDim);
}

// fp16 rounds each product, 2^-26, to 0.
TEST(Products, MayAllVanish) {
  const TwoKeys row(0x1p-13f, 0x1p-13f, 2.0f);
  expect_declared(row, &A::product_format, ASSAY_FORMAT_FP16, 0.0);
  expect_declared(row, &A::qk_sum_format, ASSAY_FORMAT_FP16, 0.0);
}

// A chain of bf16 stays at 256 where ones follow.
TEST(Products, PartialSumsAreRounded) {
  TwoKeys row(1.0f, 1.0f, 2.0f);
  row.keys.k[0] = 256.0f;
  row.problem.sm_scale *= 0.2f;
  expect_declared(row, &A::qk_sum_format, ASSAY_FORMAT_BF16, 256.0);
  row.problem.arithmetic.product_format = ASSAY_FORMAT_BF16;
  EXPECT_FALSE(row.allows_score(256.0));
}

// Rounded products are no block-FMA's, whatever sums weights and values.
TEST(Products, OfFp32SumsAreAddedOneByOne) {
  TwoKeys row(1.0f, 1.0f, 2.0f);
  A &a = row.problem.arithmetic;
  a.mma_block = 16, a.mma_fraction_bits = 100;
  a.product_format = ASSAY_FORMAT_FP16;
  EXPECT_GT(make_error_model(a, ASSAY_FP32, kDim).dot, 63 * kU);
}

TEST(Products, Tf32CutsOffWhatItDoesNotKeep) {
  constexpr float kCut = 1.0f + 0x1p-10f - 0x1p-23f; // 1
  expect_declared({kCut, 1.0f, 2.0f}, &A::q_format, ASSAY_FORMAT_TF32, kDim);
  expect_declared({1.0f, kCut, 2.0f}, &A::kv_format, ASSAY_FORMAT_TF32, kDim);
  TwoKeys values(1.0f, 0.0f, 1.0f); // the keys are alike
  values.problem.sm_scale = 1.0f;
  std::fill(values.keys.v.begin(), values.keys.v.end(), kCut);
  EXPECT_FALSE(values.allows(1.0));
  values.problem.arithmetic.kv_format = ASSAY_FORMAT_TF32;
  EXPECT_TRUE(values.allows(1.0));
}

// A weight of 2^-1 (1 + 2^-10) that is cut to 2^-1, beside one of 1.
TEST(Products, Tf32CutsWeights) {
  TwoKeys row(1.0f, 1.0f, 1.0f);
  row.problem.sm_scale *= 1.0f - 0.00139f;
  const double p = std::exp2(-row.scale() * kDim);
  ASSERT_GT(p, 0.5 * (1.0 + 0.9 * 0x1p-10));
  ASSERT_LT(p, 0.5 * (1.0 + 0x1p-10));
  std::fill_n(row.keys.v.begin(), kDim, 0.0f);
  std::fill_n(row.keys.v.begin() + kDim, kDim, 1.0f);
  const double cut = 0.5 / (1.0 + p);
  row.problem.arithmetic.p_format = ASSAY_FORMAT_FP16;
  EXPECT_FALSE(row.allows(cut));
  row.problem.arithmetic.p_format = ASSAY_FORMAT_TF32;
  EXPECT_TRUE(row.allows(cut));
  const TileOrder order = deal_tiles(2, 2, 1, 1);
  row.problem.order = &order; // whether it was cut or rounded is not known
  EXPECT_FALSE(row.reference().t1.applies());
}

TEST(Products, OutputsAreRoundedTwice) {
  const auto allows = [](assay_format format, float value, double o) {
    TwoKeys row(1.0f, 0.0f, 1.0f);
    row.problem.sm_scale = 1.0f;
    std::fill(row.keys.v.begin(), row.keys.v.end(), value);
    row.problem.arithmetic.output_format = format;
    return row.allows(o);
  };
  EXPECT_TRUE(allows(ASSAY_FORMAT_BF16, kAboveOne, 1.0));
  EXPECT_FALSE(allows(ASSAY_FORMAT_FP16, kAboveOne, 1.0));
  EXPECT_TRUE(allows(ASSAY_FORMAT_FP16, 1.0f + 0x1p-11f, 1.0));
  EXPECT_FALSE(allows(ASSAY_FORMAT_FP32, 1.0f + 0x1p-11f, 1.0));
  EXPECT_TRUE(allows(ASSAY_FORMAT_FP16, 0x1p-25f, 0.0));
  EXPECT_FALSE(allows(ASSAY_FORMAT_BF16, 0x1p-25f, 0.0));
  EXPECT_TRUE(allows(ASSAY_FORMAT_FP16, 6e4f, 6e4));
  EXPECT_FALSE(allows(ASSAY_FORMAT_FP16, 65500.0f, 65500.0)); // no claim
}

TEST(Products, OutputsAreRoundedOnEitherSideOfTheirScales) {
  RowFacts facts;
  facts.narrows = true;
  facts.narrow = format_of(ASSAY_FP16);
  facts.features.v_scale = 0x1p-20f;
  EXPECT_EQ(narrow_rounding(facts, 0.25, 0.25 * 0x1p-20), 0x1p-25);
  facts.features.v_scale = 0x1p20f;
  EXPECT_EQ(narrow_rounding(facts, 0x1p-22, 0.25), 0x1p-5);
  facts.features.v_scale = 0x1p-20f;
  facts.features.o_scale = 0x1p-20f; // between them it is subnormal
  EXPECT_EQ(narrow_rounding(facts, 0.25, 0.25), 0x1p-5);
}

TEST(Products, NothingIsClaimedWhereARangeMayEnd) {
  struct Range {
    assay_format A::*field;
    float query, key, logit = 1.0f;
  };
  for (const Range &r : {Range{&A::q_format, 7e4f, 1.0f},
                         {&A::product_format, 300.0f, 300.0f},
                         {&A::qk_sum_format, 60.0f, 60.0f},
                         {&A::product_format, 8.0f, 8.0f, 7e4f}}) {
    TwoKeys row(r.query, r.key, r.logit);
    row.problem.arithmetic.*r.field = ASSAY_FORMAT_BF16;
    EXPECT_TRUE(row.reference().claim);
    row.problem.arithmetic.*r.field = ASSAY_FORMAT_FP16;
    EXPECT_FALSE(row.reference().claim);
  }
}

// 65504 is 65536 in bf16, which fp16 does not have.
TEST(Products, OutputsMayOverflowThroughAWiderFormat) {
  TwoKeys row(1.0f, 0.0f, 1.0f);
  row.problem.sm_scale = 1.0f;
  row.problem.dtype = ASSAY_FP16;
  std::fill(row.keys.v.begin(), row.keys.v.end(), 65504.0f);
  const std::vector<float> o(kDim, INFINITY);
  const float lse = static_cast<float>(kLn2);
  for (const assay_format format : {ASSAY_FORMAT_FP32, ASSAY_FORMAT_BF16}) {
    row.problem.arithmetic.output_format = format;
    const RowReference reference = row.reference();
    EXPECT_EQ(judge_row(row.problem, reference, o.data(), &lse, 0, 0).verdict,
              format == ASSAY_FORMAT_FP32 ? Verdict::kOutside : Verdict::kInside);
  }
}

TEST(Products, OfKeysWithScalesOfTokensAreNotClaimed) {
  TwoKeys row(1.0f, 1.0f, 1.0f);
  row.problem.features.scale_blocks = 1;
  row.problem.arithmetic.q_format = ASSAY_FORMAT_BF16;
  EXPECT_TRUE(row.reference().claim);
  row.problem.arithmetic.product_format = ASSAY_FORMAT_BF16;
  EXPECT_FALSE(row.reference().claim);
}

// The bit model has whole products.
TEST(Products, ThatAreRoundedAreNotReplayed) {
  std::mt19937_64 random(5);
  Case c;
  c.row = draw_row(Regime::kNormal, c.dtype, 50, kDim, random);
  c.order = deal_tiles(50, 16, 1, 1);
  c.sm_scale = 0.125f;
  c.emulation.low_subnormals = true;
  EXPECT_TRUE(attention_row(c.problem(true)).t2.applies());
  for (const auto field :
       {&Emulation::q_format, &Emulation::product_format, &Emulation::qk_sum_format}) {
    Case rounded = c;
    rounded.emulation.*field = ASSAY_FORMAT_BF16;
    const RowReference row = attention_row(rounded.problem(true));
    EXPECT_FALSE(row.t2.applies());
    EXPECT_TRUE(row.t1.applies() || field == &Emulation::qk_sum_format);
  }
}

/// Rows of N(0,1) with scores of about 8 whose kernel has `hidden` and declares `declared`.
int rows_outside(const std::function<void(Emulation &)> &hidden, assay_dtype dtype,
                 const std::function<void(Emulation &)> &declared_fields) {
  int outside = 0;
  for (uint64_t number = 0; number < 40; ++number) {
    std::mt19937_64 random(97000000 + number);
    Case c;
    c.dtype = dtype;
    c.row = draw_row(Regime::kNormal, dtype, 50, kDim, random);
    c.sm_scale = 1.0f;
    c.emulation.seed = random();
    c.order = deal_tiles(50, 64, 1, 1);
    Case honest = c;
    hidden(c.emulation);
    declared_fields(honest.emulation);
    outside += honest.judge(c.run(), false).verdict == Verdict::kOutside;
  }
  return outside;
}

TEST(Products, OfEmulationsAreOutsideWhereTheirFormatIsHidden) {
  struct Hidden {
    const char *name;
    assay_format Emulation::*field;
    assay_format format;
    assay_dtype dtype = ASSAY_BF16;
  };
  for (const Hidden &h :
       {Hidden{"q_format", &Emulation::q_format, ASSAY_FORMAT_BF16, ASSAY_FP16},
        {"q_format tf32", &Emulation::q_format, ASSAY_FORMAT_TF32, ASSAY_FP32},
        {"kv_format tf32", &Emulation::kv_format, ASSAY_FORMAT_TF32, ASSAY_FP32},
        {"product_format", &Emulation::product_format, ASSAY_FORMAT_BF16},
        {"qk_sum_format", &Emulation::qk_sum_format, ASSAY_FORMAT_BF16},
        {"output_format", &Emulation::output_format, ASSAY_FORMAT_BF16, ASSAY_FP32}}) {
    const auto of = [&](assay_format format) {
      return [&h, format](Emulation &e) {
        if (h.dtype == ASSAY_FP32) e.p_format = ASSAY_FORMAT_FP32;
        e.*h.field = format;
      };
    };
    const int outside = rows_outside(of(h.format), h.dtype, of(ASSAY_FORMAT_FP32));
    printf("%-14s hidden: %d of 40 rows outside\n", h.name, outside);
    EXPECT_GE(outside, 30) << h.name;
    EXPECT_EQ(rows_outside(of(h.format), h.dtype, of(h.format)), 0) << h.name;
  }
}

} // namespace
} // namespace assay::oracle::test
