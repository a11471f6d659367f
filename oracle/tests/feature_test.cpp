// SPDX-License-Identifier: Apache-2.0
// fp8, softcap, ALiBi, sinks and windows: a correct kernel is never outside, a wrong one is, and
// the fast path's radii are honest.
#include <gtest/gtest.h>

#include "oracle/bounds/error_model.h"
#include "oracle/judge/certify.h"
#include "oracle/tests/feature_campaign.h"

namespace assay::oracle::test {
namespace {

Case feature_case(Feature feature, uint64_t number) {
  std::mt19937_64 random(61000000 + 1000000 * static_cast<uint64_t>(feature) + number);
  return draw_feature_case(feature, random, 200);
}

// Without the output rounding, which dwarfs the rest.
double worst_before_rounding(const Case &c) {
  Case unrounded = c;
  unrounded.emulation.round_output = false;
  const RowReference row = attention_row(c.problem(true));
  const RowOutput out = unrounded.run();
  double worst = 0.0;
  const auto ratio = [&](size_t i, const Enclosure &reference, const BudgetTerms &budget) {
    if (budget.overflow_possible) return;
    const double distance = std::fabs(out.o[i] - reference.mid) - reference.rad;
    // Not total less rounding: next to a dominant sink the rest is far below its last bit.
    const double rest = budget.weights + budget.p_rounding + budget.accumulation +
                        budget.normalisation + budget.merge + budget.flush;
    if (distance > 0.0) worst = std::max(worst, distance / (rest * kSlack));
  };
  for (size_t i = 0; i < out.o.size() && row.claim; ++i) {
    ratio(i, row.o[i], row.t0[i]);
    if (row.t1.applies()) ratio(i, row.t1.o[i], row.t1.budget[i]);
    if (row.t2.applies()) ratio(i, row.t2.o[i], row.t2.budget[i]);
  }
  return worst;
}

class Features : public testing::TestWithParam<Feature> {};

TEST_P(Features, CorrectKernelIsNeverOutside) {
  Tally tally;
  double unrounded = 0.0;
  for (uint64_t number = 0; number < 100ull * static_cast<uint64_t>(effort()); ++number) {
    const Case c = feature_case(GetParam(), number);
    const RowOutput out = c.run();
    for (bool with_order : {false, true}) {
      const Report report = c.judge(out, with_order);
      tally.add(report);
      if (report.verdict == Verdict::kInside) continue;
      const ElementReport &e = report.worst;
      ADD_FAILURE() << "case " << number << " " << regime_name(c.regime) << " dtype " << c.dtype
                    << " n " << c.row.keys.size() << " dim " << e.dim << " tier " << e.tier
                    << " got " << e.got << " reference " << e.reference.mid << " bound "
                    << e.budget.total << " " << reason_text(e.reason);
      if (tally.violations > 50) return;
    }
    const double ratio = worst_before_rounding(c);
    EXPECT_LE(ratio, 1.0) << "case " << number << " " << regime_name(c.regime);
    unrounded = std::max(unrounded, ratio);
  }
  printf("%-8s outputs %8lu no claim %7lu violations %lu  T0 %.4f T1 %.4f T2 %.4f LSE %.4f "
         "unrounded %.4f\n",
         feature_name(GetParam()), tally.outputs, tally.no_claim, tally.violations, tally.t0,
         tally.t1, tally.t2, tally.lse, unrounded);
  EXPECT_EQ(tally.violations, 0u);
  EXPECT_GT(tally.outputs, 3 * tally.no_claim);
  const bool mapped = GetParam() == Feature::kSoftcap || GetParam() == Feature::kAlibi;
  EXPECT_EQ(tally.t2 > 0.0, !mapped);
}

TEST_P(Features, RadiiAreHonest) {
  uint64_t values = 0, outside = 0, tightened = 0;
  const auto check = [&](const Enclosure &fast, const Interval &certified) {
    ++values;
    outside += !encloses(fast, certified);
    tightened += !encloses({fast.mid, fast.rad * 1e-6}, certified);
  };
  for (uint64_t number = 0; number < 40; ++number) {
    std::mt19937_64 random(87000 + 100 * static_cast<uint64_t>(GetParam()) + number);
    const Case c = draw_feature_case(GetParam(), random, 60);
    const RowProblem problem = c.problem(true);
    const RowReference row = attention_row(problem);
    if (!row.claim || row.empty) continue;
    const CertifiedRow certified(problem, 256);
    check(row.lse, certified.lse());
    for (int i = 0; i < problem.keys->head_dim; i += 7) {
      check(row.o[static_cast<size_t>(i)], certified.output(i));
      if (row.t1.applies())
        check(row.t1.o[static_cast<size_t>(i)], certified_replay(problem, 1, i, 256));
    }
  }
  EXPECT_EQ(outside, 0u);
  EXPECT_GT(tightened, values / 5);
}

INSTANTIATE_TEST_SUITE_P(, Features,
                         testing::Values(Feature::kFp8, Feature::kSoftcap, Feature::kAlibi,
                                         Feature::kSink, Feature::kWindow, Feature::kAll),
                         [](const auto &info) { return feature_name(info.param); });

// What each wrong feature costs in how many of 20 rows of 1,000 keys, N(0, 1), bf16.
struct Wrong {
  const char *name;
  RowFeatures features;
  Mutant mutant;
  int keys_more = 0; ///< that the wrong kernel sees: a window or a causal bound off by one
};

int kills(const Wrong &wrong, double *worst_t0) {
  int killed = 0;
  for (uint64_t run = 0; run < 20; ++run) {
    std::mt19937_64 random(300 + run);
    Case c;
    c.dtype = wrong.features.fp8 ? ASSAY_FP16 : ASSAY_BF16;
    c.row = draw_row(Regime::kNormal, c.dtype, 1001, 128, random);
    if (wrong.features.fp8) narrow(c.row.keys, ASSAY_E4M3);
    c.sm_scale = 1.0f / std::sqrt(128.0f);
    c.splits = 4;
    c.emulation.seed = random();
    c.emulation.mutant = wrong.mutant;
    const auto d = static_cast<int64_t>(128);
    Case seen = c; // by the wrong kernel
    KeySet &k = c.row.keys;
    if (wrong.keys_more <= 0) { // ... or the oldest key is not for either
      k.k.erase(k.k.begin(), k.k.begin() + d);
      k.v.erase(k.v.begin(), k.v.begin() + d);
      if (wrong.keys_more == 0) seen.row = c.row;
    } else {
      k.k.resize(k.k.size() - 128);
      k.v.resize(k.v.size() - 128);
    }
    k.finish(operand_dtype(c.dtype, wrong.features.fp8));
    for (Case *which : {&c, &seen}) {
      which->order = deal_tiles(static_cast<int>(which->row.keys.size()), 64, 4, 1);
      which->set_features(wrong.features);
    }
    const RowProblem problem = c.problem(true);
    const RowReference row = attention_row(problem);
    const RowOutput out = seen.run();
    killed += judge_row(problem, row, out.o.data(), &out.lse, 0, 0).verdict == Verdict::kOutside;
    for (size_t i = 0; i < row.o.size(); ++i)
      *worst_t0 = std::max(*worst_t0, std::fabs(out.o[i] - row.o[i].mid) / row.t0[i].total);
  }
  return killed;
}

TEST(FeatureDetection, WrongFeaturesAreOutside) {
  RowFeatures fp8, cap, alibi, sink, plain;
  fp8.fp8 = true;
  fp8.k_scale = 1.0625f;
  cap.softcap = 30.0f;
  alibi.alibi = true;
  alibi.slope = 0x1p-8f;
  sink.sinks = true;
  sink.sink = 3.0f;
  for (const Wrong &wrong :
       std::initializer_list<Wrong>{{"softcap 30 missing", cap, Mutant::kNoSoftcap},
                                    {"ALiBi distance off by one", alibi, Mutant::kAlibiOffByOne},
                                    {"sink counted per split", sink, Mutant::kSinkPerSplit},
                                    {"k_scale of another head (6 %)", fp8, Mutant::kScaleIgnored},
                                    {"window off by one", plain, Mutant::kNone, -1},
                                    {"causal bound off by one", plain, Mutant::kNone, 1}}) {
    Wrong honest = wrong;
    honest.mutant = Mutant::kNone;
    honest.keys_more = 0;
    double t0 = 0.0, t0_honest = 0.0;
    EXPECT_EQ(kills(honest, &t0_honest), 0) << wrong.name;
    const int killed = kills(wrong, &t0);
    printf("%-32s %2d of 20 outside, error at most %.1f T0\n", wrong.name, killed, t0);
    EXPECT_GE(killed, 18) << wrong.name;
  }
}

TEST(Fp8, DecodesEveryByte) {
  const auto value = [](assay_dtype dtype, int bits) {
    const auto byte = static_cast<uint8_t>(bits);
    return load_element(dtype, &byte, 0);
  };
  EXPECT_EQ(value(ASSAY_E4M3, 0x7E), 448.0f);
  EXPECT_TRUE(std::isnan(value(ASSAY_E4M3, 0x7F)) && std::isnan(value(ASSAY_E4M3, 0xFF)));
  EXPECT_EQ(value(ASSAY_E4M3, 0x81), -0x1p-9f);
  EXPECT_EQ(value(ASSAY_E5M2, 0x7B), 57344.0f);
  EXPECT_TRUE(std::isinf(value(ASSAY_E5M2, 0xFC)) && std::isnan(value(ASSAY_E5M2, 0xFF)));
  EXPECT_EQ(value(ASSAY_E5M2, 0x01), 0x1p-16f);
  for (assay_dtype dtype : {ASSAY_E4M3, ASSAY_E5M2}) {
    for (int bits = 0; bits < 256; ++bits) {
      const float x = value(dtype, bits);
      if (!std::isfinite(x)) continue;
      uint8_t out = 0;
      store_element(dtype, &out, 0, x);
      ASSERT_EQ(out, bits) << dtype;
      ASSERT_EQ(round_to(format_of(dtype), x), x);
    }
  }
}

TEST(ClipOrder, KeepsMaskedKeysOfTheFirstStep) {
  const TileOrder order{{0, 0, 0, 16}, {0, 1, 16, 32}, {1, 0, 32, 40}};
  const TileOrder clipped = clip_order(order, 21, 35);
  ASSERT_EQ(clipped.size(), 2u);
  EXPECT_EQ(clipped[0].begin, 0);
  EXPECT_EQ(clipped[0].end, 11);
  EXPECT_EQ(clipped[0].lead, 5);
  EXPECT_EQ(clipped[1].end, 14);
  EXPECT_NO_THROW(require_partition(clipped, 14));
}

// Only a sink: O is exactly 0 and LSE the sink's logit; a sink of -inf is no sink.
TEST(Sinks, ARowWithoutKeysReturnsTheSink) {
  KeySet none;
  none.head_dim = 16;
  none.finish(ASSAY_BF16);
  const KeySet sunk = none.with_sink(ASSAY_BF16);
  const std::vector<float> q(16, 1.0f);
  std::vector<float> o(16, 0.0f);
  RowProblem problem;
  problem.q = q;
  problem.keys = &sunk;
  problem.arithmetic = declared({});
  problem.features.sinks = true;
  problem.features.sink = 1.25f;
  const auto verdict = [&](float lse) {
    return judge_row(problem, attention_row(problem), o.data(), &lse, 0, 0).verdict;
  };
  EXPECT_EQ(verdict(1.25f), Verdict::kInside);
  EXPECT_EQ(verdict(1.2501f), Verdict::kOutside);
  EXPECT_EQ(verdict(-INFINITY), Verdict::kOutside);
  o[3] = 1e-30f;
  EXPECT_EQ(verdict(1.25f), Verdict::kOutside);
  o[3] = 0.0f;
  problem.features.sink = -INFINITY;
  problem.keys = &none;
  EXPECT_EQ(verdict(-INFINITY), Verdict::kInside);
  EXPECT_EQ(verdict(0.0f), Verdict::kOutside);
}

} // namespace
} // namespace assay::oracle::test
