// SPDX-License-Identifier: Apache-2.0
// The bit replay against the emulation's block-FMA, which is written in floating point and apart.
#include "oracle/bounds/block_fma.h"

#include <gtest/gtest.h>

#include "oracle/exact/dtype.h"
#include "oracle/tests/emulated_ops.h"
#include "oracle/tests/regimes.h"

namespace assay::oracle::test {
namespace {

/// Scores of a row by both models; returns how many were compared.
int compare(const RowData &row, assay_dtype dtype, int block, int fraction_bits) {
  Emulation emulation;
  emulation.block = block;
  emulation.fraction_bits = fraction_bits;
  emulation.low_subnormals = true;
  RowProblem problem;
  problem.q = row.q;
  problem.keys = &row.keys;
  problem.dtype = dtype;
  problem.arithmetic = declared(emulation);
  const std::vector<double> scores = replay_scores(problem);
  const Ops ops(emulation, dtype);
  for (size_t j = 0; j < row.keys.size(); ++j) {
    const float want = ops.accumulate(0.0f, row.q.data(), row.keys.key(j), row.keys.head_dim, 1);
    EXPECT_EQ(scores[j], static_cast<double>(want)) << "key " << j;
    if (scores[j] != static_cast<double>(want)) return 0;
  }
  return static_cast<int>(row.keys.size());
}

TEST(BlockFma, EqualsTheEmulationInEveryRegime) {
  int compared = 0;
  for (int regime = 0; regime < static_cast<int>(Regime::kCount); ++regime)
    for (uint64_t seed = 0; seed < 12; ++seed) {
      std::mt19937_64 random(seed * 100 + static_cast<uint64_t>(regime));
      const assay_dtype dtype = seed % 2 ? ASSAY_BF16 : ASSAY_FP16;
      const int d = 16 << seed % 4;
      const RowData row = draw_row(static_cast<Regime>(regime), dtype, 64, d, random);
      compared += compare(row, dtype, seed % 3 ? 16 : 8, seed % 5 == 0 ? 13 : 25);
    }
  EXPECT_EQ(compared, static_cast<int>(Regime::kCount) * 12 * 64);
}

// Any finite bit patterns, so that exponents of all sizes meet, subnormals and zeros included.
TEST(BlockFma, EqualsTheEmulationOnRandomBits) {
  for (uint64_t seed = 0; seed < 400; ++seed) {
    std::mt19937_64 random(seed);
    const assay_dtype dtype = seed % 2 ? ASSAY_BF16 : ASSAY_FP16;
    RowData row = draw_row(Regime::kNormal, dtype, 16, 64, random);
    const auto scramble = [&](float &x) {
      uint16_t bits;
      float value;
      do {
        bits = static_cast<uint16_t>(random());
        // bf16 exponents below -95 or up to 32: products leave fp32 at the lower end only.
        if (dtype == ASSAY_BF16) bits &= 0xcfff;
        value = load_element(dtype, &bits, 0);
      } while (!std::isfinite(value));
      x = random() % 8 ? value : 0.0f;
    };
    for (float &x : row.q)
      scramble(x);
    for (float &x : row.keys.k)
      scramble(x);
    ASSERT_EQ(compare(row, dtype, 16, 25), 16) << "seed " << seed;
  }
}

TEST(BlockFma, RefusesWhatItCannotHold) {
  std::mt19937_64 random(1);
  const RowData row = draw_row(Regime::kNormal, ASSAY_BF16, 2, 16, random);
  RowProblem problem;
  problem.q = row.q;
  problem.keys = &row.keys;
  for (const auto &[block, bits] : {std::pair(0, 25), std::pair(65, 25), std::pair(16, 39)}) {
    problem.arithmetic.mma_block = block;
    problem.arithmetic.mma_fraction_bits = bits;
    EXPECT_THROW(replay_scores(problem), std::invalid_argument);
  }
}

} // namespace
} // namespace assay::oracle::test
