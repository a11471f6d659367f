// SPDX-License-Identifier: Apache-2.0
// Noise is no change, a change is one, and a run in which base itself moves says nothing.
#include "kernels/bench/versus/verdict.h"

#include <gtest/gtest.h>
#include <random>

namespace assay::bench {
namespace {

/// `rounds` times around `us`, 0.5 % apart.
std::vector<double> around(double us, std::mt19937 &rng, int rounds = 24) {
  std::normal_distribution<double> noise(1, 0.005);
  std::vector<double> out;
  for (int i = 0; i < rounds; ++i)
    out.push_back(us * noise(rng));
  return out;
}

Arms arms(double base, double head, double again, std::mt19937 &rng) {
  return {around(base, rng), around(head, rng), around(again, rng)};
}

TEST(Verdict, NoiseIsNoChange) {
  std::mt19937 rng(1);
  std::vector<Arms> cells;
  for (int i = 0; i < 2000; ++i)
    cells.push_back(arms(50, 50, 50, rng));
  for (const Compared &c : compare_speeds(cells))
    EXPECT_EQ(c.speed, Speed::kSame) << c.ratio << " " << c.control;
}

TEST(Verdict, AFewPercentAreSeenBesideUnchangedCells) {
  std::mt19937 rng(2);
  std::vector<Arms> cells;
  for (int i = 0; i < 60; ++i)
    cells.push_back(arms(20, 20, 20, rng));
  cells.push_back(arms(20, 20.8, 20, rng));
  cells.push_back(arms(20, 19.2, 20, rng));
  const std::vector<Compared> out = compare_speeds(cells);
  EXPECT_EQ(out[60].speed, Speed::kSlower);
  EXPECT_EQ(out[61].speed, Speed::kFaster);
  for (int i = 0; i < 60; ++i)
    EXPECT_EQ(out[i].speed, Speed::kSame);
}

TEST(Verdict, WhatIsCertainAndSmallIsNoChange) {
  std::mt19937 rng(3);
  const Compared c = compare_speeds({arms(20, 20.2, 20, rng)})[0];
  EXPECT_LT(c.p, 0.05);
  EXPECT_EQ(c.speed, Speed::kSame);
}

TEST(Verdict, WhereBaseMovesNothingIsSaid) {
  std::mt19937 rng(4);
  EXPECT_EQ(compare_speeds({arms(20, 22, 20.6, rng)})[0].speed, Speed::kInconclusive);
  EXPECT_EQ(compare_speeds({arms(20, 20, 20.6, rng)})[0].speed, Speed::kInconclusive);
}

TEST(Verdict, RankTestOfKnownSamples) {
  EXPECT_EQ(rank_test({}, {1, 2}), 1);
  EXPECT_EQ(rank_test({1, 1, 1}, {1, 1}), 1);
  EXPECT_DOUBLE_EQ(rank_test({1, 2, 3}, {4, 5, 6}), rank_test({4, 5, 6}, {1, 2, 3}));
  // U = 0 of 10 and 10: mean 50, variance 175, z = 49.5 / sqrt(175).
  const std::vector<double> low = {1, 2, 3, 4, 5, 6, 7, 8, 9, 10};
  std::vector<double> high;
  for (const double x : low)
    high.push_back(x + 10);
  EXPECT_NEAR(rank_test(low, high), std::erfc(49.5 / std::sqrt(175.0) / std::sqrt(2.0)), 1e-12);
}

} // namespace
} // namespace assay::bench
