// SPDX-License-Identifier: Apache-2.0
// Random rows in many value regimes.
#pragma once

#include <cstdint>
#include <random>
#include <vector>

#include "oracle/exact/row_input.h"

namespace assay::oracle::test {

enum class Regime {
  kNormal,
  kScaled, ///< q, k, v each times a power of two
  kRising, ///< every tile raises the maximum
  kFalling,
  kDominant,   ///< one key takes nearly all weight
  kTies,       ///< a few distinct keys
  kOffset,     ///< large common score
  kHugeLogits, ///< |logit| to 1e5
  kCancelling, ///< large terms, small scores
  kLargeV,     ///< near the largest finite value
  kShiftedV,   ///< V + 100
  kSmallV,     ///< V * 1e-3
  kTinyV,      ///< subnormal
  kSubnormalQk,
  kIntegers,
  kOneHot,
  kConstantV,
  kZeroQuery,
  kCount
};
const char *regime_name(Regime regime);

struct RowData {
  std::vector<float> q;
  KeySet keys;
};

RowData draw_row(Regime regime, assay_dtype dtype, int n, int d, std::mt19937_64 &random);

} // namespace assay::oracle::test
