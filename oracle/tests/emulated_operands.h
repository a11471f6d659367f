// SPDX-License-Identifier: Apache-2.0
// What becomes of Q, K and V of an emulated kernel before their products.
#pragma once

#include <vector>

#include "oracle/exact/row_input.h"
#include "oracle/tests/emulated_ops.h"

namespace assay::oracle::test {

/** Q in a narrow format, its largest value scaled to 1; rounding errors are at most half the last
    place of [1/2, 1) there, unit_roundoff / 2 of the largest, and less below it. */
void round_query(std::vector<float> &q, const Format &format);

/** Q as fp16: its largest magnitude in [2^14, 2^15). Returns the power of two that undoes it. */
float scale_query(std::vector<float> &q);

/** What scales the scores of a row. */
struct ScoreScales {
  float sm_scale, log2e, k_scale;
};
/** Q times a part of its scales in fp32, rounded to `format` where there is one. Returns what is
    left of the scales. */
float round_scaled_query(std::vector<float> &q, const ScoreScales &scales, const Ops &ops,
                         uint64_t seed, const Format *format);

/** K and V as the products take them; the scales are inside from here on. */
KeySet scaled_and_rounded(const KeySet &keys, RowFeatures &features, const Ops &ops,
                          const Format &format);

} // namespace assay::oracle::test
