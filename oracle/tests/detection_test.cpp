// SPDX-License-Identifier: Apache-2.0
// Wrong kernels are outside: per mutant and per bound, how often.
#include <gtest/gtest.h>

#include <map>

#include "oracle/tests/campaign.h"

namespace assay::oracle::test {
namespace {

struct Kills {
  int runs = 0, t0 = 0, t1 = 0, t2 = 0, lse = 0, any = 0;
};

// What the row's own inputs (not the mutated ones) allow, against what the wrong kernel returned.
void score(const RowProblem &problem, const RowOutput &out, Kills &kills) {
  const RowReference row = attention_row(problem);
  bool t0 = false, t1 = false, t2 = false;
  for (size_t i = 0; i < out.o.size(); ++i) {
    t0 = t0 || !(std::fabs(out.o[i] - row.o[i].mid) <= row.t0[i].total);
    if (row.t1.applies()) {
      t1 = t1 || !(std::fabs(out.o[i] - row.t1.o[i].mid) <= row.t1.budget[i].total);
    }
    if (row.t2.applies()) {
      t2 = t2 || !(std::fabs(out.o[i] - row.t2.o[i].mid) <= row.t2.budget[i].total);
    }
  }
  const bool lse = !(std::fabs(out.lse - row.lse.mid) <= row.lse_budget);
  if (row.t2.applies()) {
    t2 = t2 || !(std::fabs(out.lse - row.t2.lse.mid) <= row.t2.lse_budget);
  }
  const Report report = judge_row(problem, row, out.o.data(), &out.lse, 0, 0);
  EXPECT_EQ(report.verdict == Verdict::kOutside, t0 || t1 || t2 || lse);
  ++kills.runs;
  kills.t0 += t0;
  kills.t1 += t1;
  kills.lse += lse;
  kills.t2 += t2;
  kills.any += t0 || t1 || t2 || lse;
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
    for (int m = 0; m < static_cast<int>(Mutant::kCount); ++m) {
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
      score(problem, out, table[emulation.mutant]);
    }
  }
  return table;
}

void print(const Setting &s, const std::map<Mutant, Kills> &table) {
  printf("n %d, d %d, tile %d, %d splits, %d states, %d runs:      T0   T1   T2  LSE  any\n", s.n,
         s.d, s.tile, s.splits, s.states, s.runs);
  for (const auto &[mutant, k] : table) {
    printf("%-40s %4d %4d %4d %4d %4d\n", mutant_name(mutant), k.t0, k.t1, k.t2, k.lse, k.any);
  }
}

bool needs_states(Mutant m) { return m == Mutant::kStatesIgnoreMaxima; }

TEST(Detection, MutantsOfALongRow) {
  const Setting setting{4093, 128, 64, 8, 1, 20};
  const auto table = kill_table(setting);
  print(setting, table);
  int killed = 0, runs = 0;
  for (const auto &[mutant, k] : table) {
    if (mutant == Mutant::kNone) {
      EXPECT_EQ(k.any, 0);
      continue;
    }
    if (needs_states(mutant)) continue;
    killed += k.t1;
    runs += k.runs;
    EXPECT_GT(k.any, 0) << mutant_name(mutant);
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
      EXPECT_EQ(k.any, 0);
    } else if (mutant != Mutant::kExp2Coarse && mutant != Mutant::kScaleInBf16) {
      EXPECT_GT(k.any, k.runs / 4) << mutant_name(mutant);
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
  Kills kills;
  score(problem, out, kills);
  EXPECT_EQ(kills.t1, 1);
  EXPECT_EQ(kills.lse, 1);
}

} // namespace
} // namespace assay::oracle::test
