// SPDX-License-Identifier: Apache-2.0
// Kernels that round P, the row sum or Q to narrow formats, or work in the natural base: inside
// what they declare, outside what they hide.
#include <gtest/gtest.h>

#include <functional>

#include "oracle/tests/campaign.h"

namespace assay::oracle::test {
namespace {

void expect_inside(const Case &c, uint64_t number) {
  const RowOutput out = c.run();
  for (bool with_order : {false, true}) {
    const Report report = c.judge(out, with_order);
    const ElementReport &e = report.worst;
    EXPECT_EQ(report.verdict, Verdict::kInside)
        << "case " << number << " p " << c.emulation.p_format << " sum " << c.emulation.sum_format
        << " q " << c.emulation.unit_q_format << " natural " << c.emulation.natural << " order "
        << with_order << ": dim " << e.dim << " tier " << e.tier << " got " << e.got
        << " reference " << e.reference.mid << " bound " << e.budget.total << " ratio " << e.ratio;
    EXPECT_LE(worst_before_rounding(c, attention_row(c.problem(with_order))), 1.0)
        << "case " << number;
  }
}

TEST(Formats, OfAnyKindAreInsideTheirOwnBounds) {
  for (uint64_t number = 0; number < 500ull * static_cast<uint64_t>(effort()); ++number) {
    std::mt19937_64 random(95000000 + number);
    Case c = draw_case(random, 300);
    if (number % 4 == 3) widen_errors(c, random);
    vary_formats(c, random);
    expect_inside(c, number);
  }
}

/// N(0,1) rows of 50 keys, which every format meets without losing its bounds.
Case plain_case(uint64_t number, const std::function<void(Emulation &)> &change) {
  std::mt19937_64 random(96000000 + number);
  Case c;
  c.dtype = number % 2 ? ASSAY_FP16 : ASSAY_BF16;
  c.row = draw_row(Regime::kNormal, c.dtype, 50, 64, random);
  c.sm_scale = 0.125f;
  c.emulation.tile = 16;
  c.emulation.seed = random();
  change(c.emulation);
  c.order = deal_tiles(50, 16, 1, 1);
  return c;
}

struct Choice {
  const char *name;
  void (*set)(Emulation &);
  bool replayed; ///< T1 applies
};
constexpr Choice kFormats[] = {
    {"P in fp16", [](Emulation &e) { e.p_format = ASSAY_FORMAT_FP16; }, true},
    {"P in bf16", [](Emulation &e) { e.p_format = ASSAY_FORMAT_BF16; }, true},
    {"P in e4m3", [](Emulation &e) { e.p_format = ASSAY_FORMAT_E4M3; }, true},
    {"P in e5m2", [](Emulation &e) { e.p_format = ASSAY_FORMAT_E5M2; }, true},
    {"P in fp32", [](Emulation &e) { e.p_format = ASSAY_FORMAT_FP32; }, false},
    {"sums in fp16", [](Emulation &e) { e.sum_format = ASSAY_FORMAT_FP16; }, true},
    {"sums of rounded weights", [](Emulation &e) { e.sum_format = ASSAY_FORMAT_CALL; }, true},
    {"sums in bf16", [](Emulation &e) { e.sum_format = ASSAY_FORMAT_BF16; }, true},
    {"splits in fp16", [](Emulation &e) { e.partial_format = ASSAY_FORMAT_FP16; }, true},
    {"splits in bf16", [](Emulation &e) { e.partial_format = ASSAY_FORMAT_BF16; }, true},
    {"scores in bf16", [](Emulation &e) { e.score_format = ASSAY_FORMAT_BF16; }, true},
    {"P in e4m3, scaled", [](Emulation &e) { e.p_format = ASSAY_FORMAT_E4M3, e.p_scale_log2 = 8; },
     true},
    {"Q in e4m3", [](Emulation &e) { e.unit_q_format = ASSAY_FORMAT_E4M3; }, true},
    {"natural base", [](Emulation &e) { e.natural = true; }, true}};

// A bound that nothing can leave would pass all of this.
TEST(Formats, KeepTheirBoundsUseful) {
  for (const Choice &format : kFormats)
    for (uint64_t number = 0; number < 10; ++number) {
      const Case c = plain_case(number, format.set);
      const RowReference row = attention_row(c.problem(true));
      ASSERT_TRUE(row.claim) << format.name;
      double budget = 0.0, size = 0.0;
      for (size_t i = 0; i < row.o.size(); ++i) {
        budget += row.t0[i].total;
        size += std::fabs(row.o[i].mid);
      }
      EXPECT_LT(budget, 10 * size) << format.name;
      if (format.replayed && c.emulation.unit_q_format == ASSAY_FORMAT_FP32)
        EXPECT_TRUE(row.t1.applies()) << format.name;
      expect_inside(c, number);
    }
}

/// How many of 40 rows of a kernel that does as `hidden` says are outside what it declares without.
int rows_outside(void (*hidden)(Emulation &), bool with_order) {
  int outside = 0;
  for (uint64_t number = 0; number < 40; ++number) {
    const Case honest = plain_case(number, [](Emulation &) {});
    const RowProblem problem = honest.problem(with_order);
    const RowOutput out = plain_case(number, hidden).run();
    const Report report = judge_row(problem, attention_row(problem), out.o.data(), &out.lse, 0, 0);
    outside += report.verdict == Verdict::kOutside;
  }
  return outside;
}

TEST(Formats, ThatAreHiddenAreOutside) {
  for (const Choice &format : kFormats) {
    const bool unseen = format.replayed == false || std::string(format.name) == "natural base";
    // Beside weights of 16 bits, whose rounding is as large.
    const bool covered = std::string(format.name).starts_with("splits");
    const bool better = std::string(format.name) == "P in fp16"; // than bf16, in half of the rows
    for (bool with_order : {false, true}) {
      const int outside = rows_outside(format.set, with_order);
      printf("%-14s hidden: %d of 40 rows outside, order %d\n", format.name, outside, with_order);
      if (unseen || covered || better || std::string(format.name) == "P in bf16") continue;
      EXPECT_GE(outside, 30) << format.name << " order " << with_order;
    }
  }
}

TEST(Formats, OfSplitsThatAreHiddenAreOutsideWhereWeightsStayWide) {
  int outside = 0;
  for (uint64_t number = 0; number < 40; ++number) {
    const auto wide = [](Emulation &e) { e.block = 0; };
    const Case honest = plain_case(number, wide);
    const auto hidden = [](Emulation &e) {
      e.block = 0, e.partial_format = ASSAY_FORMAT_BF16, e.round_output = false;
    };
    const RowOutput out = plain_case(number, hidden).run();
    const RowReference row = attention_row(honest.problem(false));
    for (size_t i = 0; i < row.o.size(); ++i) {
      const double distance = std::fabs(out.o[i] - row.o[i].mid) - row.o[i].rad;
      outside += distance > row.t0[i].total - row.t0[i].output_rounding;
    }
  }
  EXPECT_GT(outside, 40 * 64 * 9 / 10);
}

TEST(Formats, OfTheCallAreThoseOfItsDtype) {
  for (uint64_t number = 0; number < 2; ++number) {
    const Case c = plain_case(number, [](Emulation &) {});
    const Case named = plain_case(number, [&](Emulation &e) {
      e.p_format = number % 2 ? ASSAY_FORMAT_FP16 : ASSAY_FORMAT_BF16;
    });
    const RowReference a = attention_row(c.problem(true)), b = attention_row(named.problem(true));
    for (size_t i = 0; i < a.o.size(); ++i) {
      EXPECT_EQ(a.t0[i].total, b.t0[i].total);
      EXPECT_EQ(a.t1.budget[i].total, b.t1.budget[i].total);
    }
  }
}

// Limits far above the keys of a row cost what the row can show.
TEST(Formats, CountsBeyondTheKeysOfARowCostNoMore) {
  const Case c = plain_case(0, [](Emulation &e) { e.block = 0; });
  RowProblem problem = c.problem(false);
  problem.arithmetic.tile_tokens = 1 << 30;
  problem.arithmetic.sum_depth = 50; // keys
  problem.arithmetic.max_parallel_states = 50;
  problem.max_splits = 50;
  const RowReference exact = attention_row(problem);
  problem.arithmetic.sum_depth = 1 << 20;
  problem.arithmetic.max_parallel_states = 1 << 20;
  problem.max_splits = 1 << 16;
  const RowReference wide = attention_row(problem);
  for (size_t i = 0; i < exact.t0.size(); ++i)
    EXPECT_EQ(exact.t0[i].total, wide.t0[i].total);
  EXPECT_EQ(exact.lse_budget, wide.lse_budget);
}

// A row computed in doubles is inside what fp64 accumulators allow; a chain of fp32 is not.
TEST(Formats, WideAccumulatorsAreHeldToTheirWidth) {
  int outside = 0;
  for (uint64_t number = 0; number < 40; ++number) {
    const Case c = plain_case(number, [](Emulation &e) {
      e.block = 0, e.noise = Noise::kNone, e.combine = false, e.round_output = false;
    });
    RowProblem problem = c.problem(false);
    problem.arithmetic.accumulator = ASSAY_ACCUMULATOR_FP64;
    problem.arithmetic.exp2_rel_error = problem.arithmetic.rcp_rel_error = 0x1p-50;
    problem.combine_stages = 0;
    problem.o_dtype = ASSAY_FP32;
    const RowReference row = attention_row(problem);
    const RowOutput narrow = c.run();
    for (size_t i = 0; i < row.o.size(); ++i) {
      const double distance = std::fabs(narrow.o[i] - row.o[i].mid) - row.o[i].rad;
      outside += distance > row.t0[i].accumulation + row.t0[i].output_rounding;
      EXPECT_LT(row.t0[i].accumulation, 0x1p-40);
    }
  }
  EXPECT_GT(outside, 1000);
}

// Every dtype of Q, with K and V of 16 bits: the declared error of Q is there.
TEST(Formats, TheErrorOfQueriesCountsInAnyDtype) {
  for (uint64_t number = 0; number < 2; ++number) {
    const Case c = plain_case(number, [](Emulation &) {});
    RowProblem problem = c.problem(false);
    const RowReference before = attention_row(problem);
    problem.arithmetic.q_abs_error = 0x1p-6;
    const RowReference after = attention_row(problem);
    EXPECT_GT(after.t0[0].weights, 100 * before.t0[0].weights);
    EXPECT_GT(after.lse_budget, 100 * before.lse_budget);
  }
}

/// A row of head_dim 1 whose base-2 logits are `x`, q being 1 and the scale ln 2.
struct ScoredRow {
  std::vector<float> q{1.0f};
  KeySet keys;
  RowProblem problem;
  ScoredRow(std::vector<float> x, std::vector<float> v) {
    keys.head_dim = 1;
    keys.k = std::move(x);
    keys.v = std::move(v);
    keys.finish(ASSAY_BF16);
    problem.q = q;
    problem.keys = &keys;
    problem.sm_scale = 0.693147181f;
    problem.combine_stages = 0;
    problem.arithmetic = declared({});
    problem.arithmetic.tile_tokens = 1 << 30;
  }
  /// Whether a kernel that gives `o` is inside T0.
  bool allows(double o) const {
    const RowReference row = attention_row(problem);
    return row.claim && std::fabs(o - row.o[0].mid) <= row.o[0].rad + row.t0[0].total;
  }
};

// Weights of 2^-13.25 are below half a step of e4m3 times 8, and vanish: 200 of them may do so. At
// 2^-12.25 they may be off by half a step, and not vanish.
TEST(Formats, OfScaledWeightsHaveTheirOwnSmallestStep) {
  for (const float x : {-13.25f, -12.25f}) {
    std::vector<float> scores(201, x), values(201, 1.0f);
    scores[0] = values[0] = 0.0f;
    ScoredRow row(scores, values);
    row.problem.arithmetic.p_format = ASSAY_FORMAT_E4M3;
    row.problem.arithmetic.p_scale_log2 = 3;
    EXPECT_EQ(row.allows(0.0), x == -13.25f);
    row.problem.arithmetic.p_scale_log2 = 6;
    EXPECT_FALSE(row.allows(0.0));
  }
}

// Ones that a chain of bf16 adds: it stays at 256. A depth of 2^20 is as good as one of 1,000.
TEST(Formats, OfARowSumMayBeAChainOverAllKeys) {
  ScoredRow row(std::vector<float>(1000, 0.0f), std::vector<float>(1000, 1.0f));
  row.problem.arithmetic.sum_format = ASSAY_FORMAT_BF16;
  row.problem.arithmetic.sum_depth = 1 << 20;
  EXPECT_TRUE(row.allows(1000.0 / 256.0));
  row.problem.arithmetic.sum_depth = 10;
  EXPECT_FALSE(row.allows(1000.0 / 256.0));
}

// 70,000 equal keys of weight 1 do not fit into a row sum of fp16.
TEST(Formats, ARowSumThatMayOverflowIsNoClaim) {
  KeySet keys;
  keys.head_dim = 1;
  keys.k.assign(70000, 0.0f);
  keys.v.assign(70000, 1.0f);
  keys.finish(ASSAY_BF16);
  const std::vector<float> q{1.0f};
  RowProblem problem;
  problem.q = q;
  problem.keys = &keys;
  problem.arithmetic = declared({});
  problem.arithmetic.tile_tokens = 1 << 17;
  EXPECT_TRUE(attention_row(problem).claim);
  problem.arithmetic.sum_format = ASSAY_FORMAT_FP16;
  EXPECT_FALSE(attention_row(problem).claim);
}

} // namespace
} // namespace assay::oracle::test
