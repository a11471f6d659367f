// SPDX-License-Identifier: Apache-2.0
// The joint bound of a row: right kernels stay inside in every direction; what it sees that no
// element shows.
#include <gtest/gtest.h>

#include <cmath>
#include <functional>
#include <random>

#include "oracle/bounds/joint.h"
#include "oracle/exact/sums.h"
#include "oracle/judge/certify.h"
#include "oracle/judge/joint_verdict.h"
#include "oracle/judge/sharpness.h"
#include "oracle/tests/feature_campaign.h"

namespace assay::oracle::test {
namespace {

using Directions = std::vector<std::vector<double>>;

std::mt19937_64 generator(uint64_t seed) { return std::mt19937_64(seed * 7919 + 17); }

/// A right kernel's row, N(0,1), as FlashAttention computes it.
Case normal_row(assay_dtype dtype, int keys, uint64_t seed) {
  std::mt19937_64 random = generator(seed);
  Case c;
  c.dtype = dtype;
  c.row = draw_row(Regime::kNormal, dtype, keys, 128, random);
  c.sm_scale = 1.0f / std::sqrt(128.0f);
  c.emulation.tile = 128;
  c.emulation.combine = false;
  c.order = deal_tiles(keys, 128, 1, 1);
  return c;
}

/// A case as the campaign draws them, and the reference of its row: without an order, and in one of
/// four with one, where that replays nothing.
struct Drawn {
  Case c;
  bool with_order = false;
  RowReference row;
  double spread = INFINITY;

  explicit Drawn(uint64_t number) {
    std::mt19937_64 random = generator(number);
    if (number % 3 == 2) {
      const auto features = static_cast<uint64_t>(Feature::kCount);
      c = draw_feature_case(static_cast<Feature>(number / 3 % features), random, 200);
    } else {
      c = draw_case(random, 200);
      if (number % 2 == 1) widen_errors(c, random);
      if (number / 2 % 2 == 1) vary_formats(c, random);
    }
    with_order = number / 4 % 4 == 3;
    if (with_order) c.emulation.p_format = ASSAY_FORMAT_TF32;
    if (with_order && number / 16 % 2 == 1) c.emulation.sum_format = ASSAY_FORMAT_CALL;
    row = attention_row(problem());
    if (joint()) spread = spread_of(problem().keys->v.data(), row.joint);
  }
  RowProblem problem() const { return c.problem(with_order); }
  bool joint() const { return row.claim && row.joint.applies(); }
};

double along_error(const RowReference &row, const RowOutput &out, const std::vector<double> &u) {
  double error = 0.0, radius = 0.0;
  for (size_t i = 0; i < u.size(); ++i) {
    if (u[i] == 0.0) continue;
    error += u[i] * (static_cast<double>(out.o[i]) - row.o[i].mid);
    radius += std::fabs(u[i]) * row.o[i].rad;
  }
  return std::fabs(error) - radius;
}

/// `sharp`: with what partial sums of P.V can be.
JointTerms bound_of(const Drawn &drawn, const std::vector<double> &u, bool sharp = true) {
  const float *v = drawn.problem().keys->v.data();
  return joint_bound(v, drawn.row.joint, u, sharp ? drawn.spread : INFINITY);
}

/// An error's own direction, its signs, one element, O, the heaviest key, and any.
Directions directions_of(const Drawn &drawn, const RowOutput &out, std::mt19937_64 &random) {
  std::normal_distribution<double> normal;
  const RowProblem problem = drawn.problem();
  const size_t d = out.o.size(), keys = problem.keys->size();
  Directions all(6, std::vector<double>(d));
  size_t heaviest = 0;
  for (size_t j = 0; j < keys; ++j)
    if (drawn.row.joint.keys[j].share > drawn.row.joint.keys[heaviest].share) heaviest = j;
  all[2][random() % d] = 1.0;
  for (size_t i = 0; i < d; ++i) {
    const double error = static_cast<double>(out.o[i]) - drawn.row.o[i].mid;
    all[0][i] = error;
    all[1][i] = error > 0 ? 1 : -1;
    all[3][i] = drawn.row.o[i].mid;
    all[4][i] = static_cast<double>(problem.keys->value(heaviest)[i]);
    all[5][i] = normal(random);
  }
  for (std::vector<double> &u : all)
    for (size_t i = 0; i < d; ++i)
      if (drawn.row.t0[i].overflow_possible || !std::isfinite(out.o[i])) u[i] = 0.0;
  return all;
}

TEST(Joint, RightKernelsStayInsideInEveryDirection) {
  double worst = 0.0;
  for (uint64_t number = 0; number < static_cast<uint64_t>(500 * effort()); ++number) {
    Drawn drawn(number);
    if (!drawn.joint()) continue;
    std::mt19937_64 random = generator(number + 1000000);
    for (const bool rounded : {true, false}) {
      drawn.c.emulation.round_output = rounded;
      const RowOutput out = drawn.c.run();
      for (const std::vector<double> &u : directions_of(drawn, out, random)) {
        const double allowed = bound_of(drawn, u).total, error = along_error(drawn.row, out, u);
        if (!(error > 0.0) || !std::isfinite(allowed)) continue;
        worst = std::max(worst, error / allowed);
        ASSERT_LE(error, allowed) << "case " << number << " " << regime_name(drawn.c.regime);
      }
    }
  }
  EXPECT_GT(worst, 0.9); // some direction comes near
}

double largest_value(const KeySet &keys, size_t i) {
  return std::max(std::fabs(keys.v_min[i]), std::fabs(keys.v_max[i]));
}

/// Along one element it is that element's T0, which is no wider, but for sums of rounded weights.
TEST(Joint, OfOneElementIsThatElementsBound) {
  int rows = 0, same = 0;
  for (uint64_t number = 0; number < 600; ++number) {
    const Drawn drawn(number);
    if (!drawn.joint()) continue;
    ++rows;
    const bool apart = !drawn.row.joint.sums_rounded;
    for (size_t i = 0; i < drawn.row.o.size(); i += 5) {
      const BudgetTerms &t0 = drawn.row.t0[i];
      if (t0.overflow_possible || !std::isfinite(t0.total)) continue;
      std::vector<double> u(drawn.row.o.size());
      u[i] = 1.0;
      const JointTerms joint = bound_of(drawn, u, false);
      // P in two parts, which no order excludes, costs a sum of rounded weights up to |o| more.
      // Where O is nothing beside V, what is subnormal is summed more coarsely.
      const double beside = 1e-7 * drawn.row.joint.scale * largest_value(*drawn.problem().keys, i);
      ASSERT_LE(joint.total, (apart ? 1.05 : 1.5) * t0.total + beside)
          << "case " << number << " dim " << i;
      if (!apart) continue;
      ++same;
      ASSERT_GE(joint.total, 0.999 * t0.total) << "case " << number << " dim " << i;
    }
  }
  EXPECT_GT(rows, 150);
  EXPECT_GT(same, 150);
}

/// Three keys by hand: what their rounding moves is |u.v|, with sums of rounded weights the largest
/// of that, |u.(v - o)| and |u.o|.
TEST(Joint, TermsByHand) {
  const JointAlong along{.o = 0.5, .blur = 0.01, .elements = 0.3, .accumulation = 0.2};
  for (const bool rounded : {false, true}) {
    const JointScalars row{
        .sums_rounded = rounded, .p_unit = 0.25, .subnormal = 0.05, .normalise = 0.5, .scale = 2.0};
    JointSums sums;
    add_joint_key(row, along, {.error = 0.1, .share = 0.5, .subnormal = 0.02}, 1.0, sums);
    add_joint_key(row, along, {.error = 0.2, .share = 0.3, .subnormal = 0.03}, -2.0, sums);
    add_joint_key(row, along, {.error = 0.0, .share = 0.2, .subnormal = 0.0}, 0.1, sums);
    const double moved[] = {1.01, rounded ? 2.51 : 2.01, rounded ? 0.5 + 0.01 + 0.25 * 0.11 : 0.11};
    const double weights = 0.1 * 0.51 + 0.2 * 2.51, r = rounded ? 0.3 : 0.0;
    const double rounding = (0.25 * (0.5 * moved[0] + 0.3 * moved[1] + 0.2 * moved[2]) +
                             0.02 * moved[0] + 0.03 * moved[1] + r * weights) /
                            (1 - r);
    const JointTerms t = joint_terms(row, along, sums);
    EXPECT_NEAR(t.weights, 2 * weights, 1e-12);
    EXPECT_NEAR(t.rounding, 2 * rounding, 1e-12);
    EXPECT_NEAR(t.normalisation, 2 * 0.5 * (0.51 + weights + rounding), 1e-12);
    EXPECT_NEAR(t.total, (t.weights + t.rounding + t.normalisation + 0.5) * kSlack, 1e-12);
  }
}

/// An arithmetic that adds rounded weights is taken for wider than one that does not: in no
/// direction does the one allow less than the other.
TEST(Joint, SumsOfRoundedWeightsAllowNoLess) {
  std::mt19937_64 random = generator(3);
  std::normal_distribution<double> normal;
  for (const float offset : {0.0f, 0.2f, 3.0f}) {
    Case c = normal_row(ASSAY_BF16, 200, 5);
    for (float &x : c.row.keys.v)
      x += offset;
    c.row.keys.finish(c.dtype);
    const RowReference apart = attention_row(c.problem(false));
    c.emulation.sum_format = ASSAY_FORMAT_CALL;
    const RowReference rounded = attention_row(c.problem(false));
    const float *v = c.row.keys.v.data();
    for (int i = 0; i < 50; ++i) {
      std::vector<double> u(apart.o.size(), i == 0 ? 1.0 : 0.0);
      for (double &x : u)
        x += i == 0 ? 0.0 : normal(random);
      EXPECT_GE(joint_bound(v, rounded.joint, u).total,
                joint_bound(v, apart.joint, u).total * (1 - 1e-9));
    }
  }
}

/// A denominator that may be low by a share makes every error of the numerator larger by as much.
TEST(Joint, ErrorsOfTheNumeratorGrowWithTheDenominators) {
  Case c = normal_row(ASSAY_BF16, 100, 1);
  c.emulation.sum_format = ASSAY_FORMAT_CALL;
  const RowProblem problem = c.problem(false);
  const RowReference row = attention_row(problem);
  ASSERT_TRUE(row.joint.applies());
  const double entry = row.joint.entry();
  EXPECT_GE(entry, 0x1p-8);
  for (size_t i = 0; i < row.o.size(); ++i) {
    EXPECT_GE(row.joint.accumulation[i], row.t0[i].accumulation / (1.0 - entry));
    EXPECT_GT(row.joint.blur[i], 0.0);
  }
}

TEST(Joint, IsANorm) {
  std::mt19937_64 random = generator(5);
  std::normal_distribution<double> normal;
  for (uint64_t number = 0; number < 100; ++number) {
    const Drawn drawn(number);
    if (!drawn.joint()) continue;
    std::vector<double> u(drawn.row.o.size()), w(u.size()), sum(u.size()), twice(u.size());
    for (size_t i = 0; i < u.size(); ++i) {
      u[i] = normal(random);
      w[i] = normal(random);
      sum[i] = u[i] + w[i];
      twice[i] = -2 * u[i];
    }
    const double of_u = bound_of(drawn, u).total, of_w = bound_of(drawn, w).total;
    if (!std::isfinite(of_u) || !std::isfinite(of_w)) continue;
    EXPECT_LE(bound_of(drawn, sum).total, (of_u + of_w) * (1 + 1e-9));
    EXPECT_NEAR(bound_of(drawn, twice).total, 2 * of_u, 1e-9 * of_u);
  }
}

/// Rows of 60 in which a mistake is seen, and in how many of those by the row alone.
struct Seen {
  int rows = 0, as_rows = 0;
};
Seen seen_of(assay_dtype dtype, int keys, const std::function<void(Case &, RowOutput &)> &wrong) {
  Seen seen;
  for (uint64_t seed = 0; seed < 60; ++seed) {
    const Case c = normal_row(dtype, keys, seed);
    Case other = c;
    RowOutput out = c.run();
    wrong(other, out);
    const Report report = c.judge(out, false);
    seen.rows += report.verdict == Verdict::kOutside;
    seen.as_rows += report.worst.dim == ElementReport::kRow && report.verdict == Verdict::kOutside;
  }
  return seen;
}

void lose_key(Case &c, RowOutput &out) {
  const size_t at = 3 * c.row.keys.size() / 7, d = 128;
  for (std::vector<float> *array : {&c.row.keys.k, &c.row.keys.v})
    array->erase(array->begin() + static_cast<int64_t>(at * d),
                 array->begin() + static_cast<int64_t>((at + 1) * d));
  c.row.keys.finish(c.dtype);
  c.order = deal_tiles(static_cast<int>(c.row.keys.size()), 128, 1, 1);
  out.o = c.run().o; // the LSE alone would show it
}

void scale_values(Case &c, RowOutput &out, double factor) {
  for (float &x : c.row.keys.v)
    x = static_cast<float>(x * factor);
  out.o = c.run().o;
}

void scale_output(Case &c, RowOutput &out) { scale_values(c, out, 1.002); }

void take_neighbour(Case &c, RowOutput &out) {
  const size_t at = c.row.keys.size() / 3 * 128;
  std::copy_n(c.row.keys.v.begin() + static_cast<int64_t>(at), 128,
              c.row.keys.v.begin() + static_cast<int64_t>(at + 128));
  out.o = c.run().o;
}

TEST(Joint, SeesMistakesThatNoElementShows) {
  const Seen lost = seen_of(ASSAY_BF16, 1024, lose_key);
  EXPECT_GE(lost.rows, 36);
  EXPECT_GE(lost.as_rows, 12);
  const Seen scaled = seen_of(ASSAY_FP16, 1024, scale_output);
  EXPECT_GE(scaled.rows, 57);
  EXPECT_EQ(scaled.as_rows, scaled.rows);
  EXPECT_GE(seen_of(ASSAY_BF16, 2048, take_neighbour).rows, 30);
  EXPECT_EQ(seen_of(ASSAY_BF16, 1024, [](Case &, RowOutput &) {}).rows, 0);
}

ExactOutputs exact_of(const RowProblem &problem) {
  return [&problem](int precision) {
    return [&problem, precision](int dim) { return CertifiedRow(problem, precision).output(dim); };
  };
}

/// With radii so wide that the fast reference decides nothing, intervals do.
TEST(Joint, IsDecidedInIntervalsWhereTheRadiusIsInTheWay) {
  for (const bool wrong : {false, true}) {
    Case c = normal_row(ASSAY_FP16, 300, 3), other = c;
    RowOutput out = c.run();
    if (wrong) scale_output(other, out);
    const RowProblem problem = c.problem(false);
    RowReference row = attention_row(problem);
    for (Enclosure &o : row.o)
      o.rad = 1.0;
    Report report;
    judge_joint(report, problem.keys->v.data(), row, out.o.data(), exact_of(problem), 4, 2);
    EXPECT_EQ(report.escalated, 1U);
    EXPECT_EQ(report.verdict, wrong ? Verdict::kOutside : Verdict::kInside);
    if (!wrong) continue;
    EXPECT_EQ(report.worst.dim, ElementReport::kRow);
    EXPECT_EQ(report.worst.request, 4);
    EXPECT_EQ(report.worst.head, 2);
    EXPECT_EQ(report.finding_count, 1U);
    EXPECT_EQ(report.worst.reason, Reason::kRow);
    EXPECT_GT(report.worst_ratio_row, 1.0);
  }
}

/// What a pass is said to be worth: mistakes half as large are hardly seen, twice as large nearly
/// always.
TEST(Joint, SaysHowSmallAMistakeItShows) {
  int rows = 0, scaled[2] = {}, bent[2] = {}, lost[2] = {};
  for (uint64_t seed = 0; seed < 40; ++seed) {
    const Case c = normal_row(seed % 2 == 0 ? ASSAY_BF16 : ASSAY_FP16, 512, seed);
    const RowProblem problem = c.problem(false);
    const Sharpness sharp = sharpness_of(problem, attention_row(problem));
    ++rows;
    for (const int large : {0, 1}) {
      const double times = large == 0 ? 0.5 : 2.0;
      RowOutput out = c.run();
      Case other = c;
      scale_values(other, out, 1.0 + times * sharp.scaling);
      scaled[large] += c.judge(out, false).verdict == Verdict::kOutside;
      other = c;
      other.sm_scale *= static_cast<float>(1.0 + times * sharp.sm_scale);
      out.o = other.run().o;
      bent[large] += c.judge(out, false).verdict == Verdict::kOutside;
      // The 17th key counts less: by that share of all weights.
      const RowReference row = attention_row(problem);
      out = c.run();
      for (size_t i = 0; i < out.o.size(); ++i)
        out.o[i] = static_cast<float>(
            round_to(format_of(c.dtype), out.o[i] + times * sharp.lost_weight *
                                                        (c.row.keys.value(17)[i] - row.o[i].mid)));
      lost[large] += c.judge(out, false).verdict == Verdict::kOutside;
    }
  }
  for (const auto *seen : {scaled, bent, lost}) {
    EXPECT_LE(seen[0], rows / 5);
    EXPECT_GE(seen[1], rows * 4 / 5);
  }
}

TEST(Joint, TakesNoElementWithoutAClaim) {
  Case c = normal_row(ASSAY_FP16, 64, 1);
  const RowProblem problem = c.problem(false);
  RowReference row = attention_row(problem);
  RowOutput out = c.run();
  row.t0[3].overflow_possible = true;
  out.o[3] = 1e4f;
  out.o[5] = INFINITY;
  Report report;
  judge_joint(report, problem.keys->v.data(), row, out.o.data(), exact_of(problem), 0, 0);
  EXPECT_EQ(report.verdict, Verdict::kInside);
  EXPECT_LT(report.worst_ratio_row, 1.0);
  const Direction seen = farthest_direction(problem.keys->v.data(), row, out.o.data());
  ASSERT_FALSE(seen.u.empty());
  EXPECT_EQ(seen.u[3], 0.0);
  EXPECT_EQ(seen.u[5], 0.0);
}

/// Values of one length in one direction have that length; of others it is that of their square.
TEST(Joint, SpreadIsTheLongestDirectionOfTheValues) {
  constexpr size_t kKeys = 12;
  for (const size_t dims : {kKeys, 3 * kKeys}) // as many as keys, and more
    for (const bool alike : {true, false}) {
      JointRow row;
      row.center.assign(dims, 0.0);
      row.keys.assign(kKeys, {.error = 0.0, .share = 1.0 / kKeys, .subnormal = 0.0});
      std::vector<float> v(kKeys * dims, alike ? 3.0f : 0.0f);
      if (!alike)
        for (size_t j = 0; j < kKeys; ++j)
          v[(dims + 1) * j] = 24.0f;
      const double exact =
          alike ? 3.0 * std::sqrt(static_cast<double>(dims)) : 24.0 / std::sqrt(kKeys);
      EXPECT_GE(spread_of(v.data(), row), exact) << dims;
      EXPECT_LE(spread_of(v.data(), row), 1.03 * exact) << dims;
    }
}

/// The three parts of what accumulation adds, and that it is never more than that of the elements.
TEST(Joint, AccumulationByHand) {
  JointRow row;
  row.center = row.blur = row.elements = {0.0, 0.0};
  row.accumulation = {10.0, 20.0};
  row.result = {0.5, 0.25};
  row.partial = {.keys = 2.0, .states = 0.5, .once = 0.01};
  const double u[] = {3.0, -4.0};
  EXPECT_DOUBLE_EQ(joint_bound(nullptr, row, u).accumulation, 110.0);
  EXPECT_DOUBLE_EQ(joint_bound(nullptr, row, u, 1.5).accumulation,
                   2.0 * 0.5 * (7.5 + 2.5) + 0.5 * 7.5 + 0.01 * 110.0);
  EXPECT_DOUBLE_EQ(joint_bound(nullptr, row, u, 100.0).accumulation, 110.0);
}

/// Truncated sums of ones lose a part of what is allowed, and never more.
TEST(Joint, TruncationStaysWithinThePartialSums) {
  Case c = normal_row(ASSAY_FP16, 4096, 2);
  c.emulation.p_format = ASSAY_FORMAT_FP32;
  c.emulation.round_output = false;
  std::fill(c.row.keys.v.begin(), c.row.keys.v.end(), 1.0f);
  c.row.keys.finish(c.dtype);
  const RowProblem problem = c.problem(false);
  const RowReference row = attention_row(problem);
  const RowOutput out = c.run();
  const std::vector<double> u(row.o.size(), 1.0);
  const float *v = problem.keys->v.data();
  const JointTerms allowed = joint_bound(v, row.joint, u, spread_of(v, row.joint));
  const double ratio = along_error(row, out, u) / (allowed.total - allowed.elements);
  EXPECT_GT(ratio, 0.05);
  EXPECT_LE(ratio, 1.0);
  // 8 blocks and a rescale for 128 keys, and what one state may have beside them.
  const double kappa = 17 * 0x1p-25 + 0x1p-23;
  EXPECT_NEAR(row.joint.partial.keys, 4096 * (8 * kappa + kU) / 128, 1e-2 * 4096 * kappa / 16);
  EXPECT_NEAR(row.joint.partial.states, 4 * kappa + 2 * kU, 1e-2 * kappa);
}

TEST(Joint, KnowsHowWellValuesAndScaledOutputsAreKnown) {
  Case c = normal_row(ASSAY_FP16, 64, 2);
  std::fill(c.row.q.begin(), c.row.q.end(), 0.0f); // weights are exact
  c.features.scale_blocks = 1;
  RowReference row = attention_row(c.problem(false));
  ASSERT_TRUE(row.joint.applies());
  for (size_t i = 0; i < row.o.size(); ++i)
    EXPECT_GE(row.joint.blur[i], kU * largest_value(c.row.keys, i));
  c.features.scale_blocks = 0;
  c.features.fp8 = true;
  c.features.v_scale = 3.0f;
  row = attention_row(c.problem(false));
  ASSERT_TRUE(row.joint.applies());
  for (size_t i = 0; i < row.o.size(); ++i) {
    const BudgetTerms &t = row.t0[i];
    EXPECT_GE(row.joint.elements[i],
              t.merge + t.flush + t.output_rounding + 2.9 * kU * std::fabs(row.o[i].mid));
  }
}

TEST(Joint, ReportsJoinTheRatiosOfRows) {
  Report one, other;
  one.add_row_ratio(0.25, false);
  other.add_row_ratio(0.5, true);
  one.merge(other);
  one.merge({});
  EXPECT_EQ(one.worst_ratio_row, 0.5);
  EXPECT_EQ(one.escalated, 1U);
}

TEST(Joint, RowsJudgedAgainCountNoElementTwice) {
  Report all, again;
  all.elements = again.elements = 9;
  again.add_row_ratio(0.5, false);
  again.add({.dim = 3, .ratio = 2.0, .verdict = Verdict::kOutside});
  again.add({.dim = ElementReport::kRow, .ratio = 1.5, .verdict = Verdict::kOutside});
  all.add_whole_rows(again);
  EXPECT_EQ(all.elements, 9U);
  EXPECT_EQ(all.finding_count, 1U);
  EXPECT_EQ(all.worst.dim, ElementReport::kRow);
  EXPECT_EQ(all.worst_ratio_row, 1.5);
}

TEST(Joint, SumsAlongADirectionTakeEveryElement) {
  std::mt19937_64 random = generator(9);
  std::normal_distribution<double> normal;
  for (int d = 1; d < 20; ++d) {
    std::vector<float> v(static_cast<size_t>(3 * d));
    std::vector<double> u(static_cast<size_t>(d)), products(3);
    for (float &x : v)
      x = static_cast<float>(normal(random));
    for (double &x : u)
      x = normal(random);
    along(v.data(), 3, d, u.data(), products.data());
    for (size_t j = 0; j < 3; ++j) {
      double exact = 0.0;
      for (size_t i = 0; i < u.size(); ++i)
        exact += u[i] * static_cast<double>(v[j * u.size() + i]);
      EXPECT_NEAR(products[j], exact, 1e-12);
    }
  }
}

/// Where the error's own direction is nearly outside, a better one is found, and never a worse one.
TEST(Joint, TriesBetterDirections) {
  int better = 0, rows = 0;
  for (uint64_t seed = 0; seed < 40; ++seed) {
    Case c = normal_row(ASSAY_BF16, 1024, seed), other = c;
    RowOutput out = c.run();
    lose_key(other, out);
    const RowProblem problem = c.problem(false);
    RowReference row = attention_row(problem);
    row.t0[7].overflow_possible = true; // no claim about it
    const Direction best = farthest_direction(problem.keys->v.data(), row, out.o.data());
    EXPECT_EQ(best.u[7], 0.0);
    std::vector<double> error(out.o.size());
    for (size_t i = 0; i < error.size(); ++i)
      error[i] = i == 7 ? 0.0 : static_cast<double>(out.o[i]) - row.o[i].mid;
    const double plain =
        along_error(row, out, error) / joint_bound(problem.keys->v.data(), row.joint, error).total;
    EXPECT_GE(best.ratio(), plain * (1 - 1e-9));
    if (plain < 0.5 || plain > 1.0) continue;
    ++rows;
    better += best.ratio() > 1.05 * plain;
  }
  EXPECT_GT(rows, 3);
  EXPECT_EQ(better, rows);
}

} // namespace
} // namespace assay::oracle::test
