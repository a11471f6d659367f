// SPDX-License-Identifier: Apache-2.0
// Wrong kernels are outside: per mutant and per bound, how often.
#include <gtest/gtest.h>

#include <array>
#include <map>

#include "oracle/judge/usual_rules.h"
#include "oracle/tests/campaign.h"

namespace assay::oracle::test {
namespace {

// What noticed the wrong kernel: the usual rules first, then the bounds.
enum Rule { kClose2, kClose3, kMostly, kTwicePlain, kT0, kT1, kT2, kLse, kLse2, kAny, kRules };
constexpr const char *kRuleNames[] = {"1e-2", "1e-3", "98%", "2x",   "T0",
                                      "T1",   "T2",   "LSE", "LSE2", "any"};

struct Kills {
  int runs = 0;
  std::array<int, kRules> by{};
};

bool outside(float got, const Enclosure &reference, double bound) {
  return !(std::fabs(got - reference.mid) <= bound);
}

bool any_outside(const RowOutput &out, const std::vector<Enclosure> &o,
                 const std::vector<BudgetTerms> &budget) {
  for (size_t i = 0; i < o.size(); ++i) {
    if (outside(out.o[i], o[i], budget[i].total)) return true;
  }
  return false;
}

// What the row's own inputs (not the mutated ones) allow, against what the wrong kernel returned.
void score(const RowProblem &problem, const RowReference &row, const RowOutput &out,
           const std::vector<double> &plain, Kills &kills) {
  std::vector<double> exact;
  for (const Enclosure &e : row.o)
    exact.push_back(e.mid);
  std::array<bool, kRules> noticed{};
  noticed[kClose2] = !all_close(out.o, exact, 1e-2);
  noticed[kClose3] = !all_close(out.o, exact, 1e-3);
  noticed[kMostly] = !mostly_close(out.o, exact);
  noticed[kTwicePlain] = !within_twice_plain(out.o, exact, plain, problem.dtype);
  noticed[kT0] = any_outside(out, row.o, row.t0);
  noticed[kT1] = any_outside(out, row.t1.o, row.t1.budget);
  noticed[kT2] = any_outside(out, row.t2.o, row.t2.budget);
  noticed[kLse] = outside(out.lse, row.lse, row.lse_budget);
  noticed[kLse2] = row.t2.applies() && outside(out.lse, row.t2.lse, row.t2.lse_budget);
  for (int rule = kT0; rule < kAny; ++rule) {
    noticed[kAny] = noticed[kAny] || noticed[static_cast<size_t>(rule)];
  }
  const Report report = judge_row(problem, row, out.o.data(), &out.lse, 0, 0);
  EXPECT_EQ(report.verdict == Verdict::kOutside, noticed[kAny]);
  ++kills.runs;
  for (size_t rule = 0; rule < kRules; ++rule)
    kills.by[rule] += noticed[rule];
}

struct Setting {
  int n, d, tile, splits, states, runs;
};

std::map<Mutant, Kills> kill_table(const Setting &s) {
  std::map<Mutant, Kills> table;
  for (int run = 0; run < s.runs; ++run) {
    std::mt19937_64 random(static_cast<uint64_t>(800 + run));
    const RowData row = draw_row(Regime::kNormal, ASSAY_BF16, s.n, s.d, random);
    const RowData extra = draw_row(Regime::kNormal, ASSAY_BF16, 1, s.d, random);
    RowReference reference; // equal for every mutant: it knows the right inputs only
    std::vector<double> plain;
    for (int m = 0; m < static_cast<int>(Mutant::kNoSoftcap); ++m) { // feature_test has the rest
      Emulation emulation;
      emulation.low_subnormals = true;
      emulation.tile = s.tile;
      emulation.states = s.states;
      emulation.seed = random() >> 8;
      emulation.mutant = static_cast<Mutant>(m);
      const TileOrder order = deal_tiles(s.n, s.tile, s.splits, s.states);
      KeySet seen = row.keys;
      TileOrder visited = order;
      mutate_input(emulation.mutant, emulation.seed, extra.keys, seen, visited);
      RowProblem problem;
      problem.q = row.q;
      problem.keys = &row.keys;
      problem.sm_scale = 1.0f / std::sqrt(static_cast<float>(s.d));
      problem.arithmetic = declared(emulation);
      problem.order = &order;
      problem.replay_scores = true;
      const RowOutput out = emulate_row(row.q, seen, ASSAY_BF16, problem.sm_scale, problem.lse_base,
                                        visited, emulation);
      if (m == 0) {
        reference = attention_row(problem);
        plain = plain_attention(row.q, row.keys, problem.sm_scale, ASSAY_BF16);
      }
      score(problem, reference, out, plain, table[emulation.mutant]);
    }
  }
  return table;
}

void print(const Setting &s, const std::map<Mutant, Kills> &table) {
  printf("n %d, d %d, tile %d, %d splits, %d states, %d runs\n%-40s", s.n, s.d, s.tile, s.splits,
         s.states, s.runs, "");
  for (const char *name : kRuleNames)
    printf(" %4s", name);
  std::array<int, kRules> sum{};
  for (const auto &[mutant, k] : table) {
    printf("\n%-40s", mutant_name(mutant));
    for (size_t rule = 0; rule < kRules; ++rule) {
      printf(" %4d", k.by[rule]);
      sum[rule] += k.by[rule];
    }
  }
  printf("\n%-40s", "all");
  for (int kills : sum)
    printf(" %4d", kills);
  printf("\n");
}

bool needs_states(Mutant m) { return m == Mutant::kStatesIgnoreMaxima; }

TEST(Detection, MutantsOfALongRow) {
  const Setting setting{4093, 128, 64, 8, 1, 20};
  const auto table = kill_table(setting);
  print(setting, table);
  int killed = 0, runs = 0;
  for (const auto &[mutant, k] : table) {
    if (mutant == Mutant::kNone) {
      EXPECT_EQ(k.by[kAny], 0);
      continue;
    }
    if (needs_states(mutant)) continue;
    killed += k.by[kT1];
    runs += k.runs;
    EXPECT_GT(k.by[kAny], 0) << mutant_name(mutant);
  }
  printf("T1 kills %d of %d\n", killed, runs);
  EXPECT_GE(killed, runs * 90 / 100);
}

TEST(Detection, MutantsOfAShortRowWithParallelStates) {
  const Setting setting{509, 64, 16, 2, 4, 20};
  const auto table = kill_table(setting);
  print(setting, table);
  for (const auto &[mutant, k] : table) {
    if (mutant == Mutant::kNone) {
      EXPECT_EQ(k.by[kAny], 0);
    } else if (mutant != Mutant::kExp2Coarse && mutant != Mutant::kScaleInBf16) {
      EXPECT_GT(k.by[kAny], k.runs / 4) << mutant_name(mutant);
    }
  }
}

// A kernel whose instructions are worse than it declares is caught: no term of the bound is idle.
TEST(Detection, OverstatedArithmetic) {
  std::mt19937_64 random(4);
  const RowData row = draw_row(Regime::kNormal, ASSAY_BF16, 2000, 64, random);
  Emulation emulation;
  emulation.fraction_bits = 12; // accumulates far worse than the declared 25 bits
  const TileOrder order = deal_tiles(2000, 64, 4, 1);
  RowProblem problem;
  problem.q = row.q;
  problem.keys = &row.keys;
  problem.sm_scale = 0.125f;
  problem.arithmetic = declared(Emulation{});
  problem.order = &order;
  const RowOutput out =
      emulate_row(row.q, row.keys, ASSAY_BF16, 0.125f, problem.lse_base, order, emulation);
  const RowReference reference = attention_row(problem);
  EXPECT_TRUE(any_outside(out, reference.t1.o, reference.t1.budget));
  EXPECT_TRUE(outside(out.lse, reference.lse, reference.lse_budget));
}

} // namespace
} // namespace assay::oracle::test
