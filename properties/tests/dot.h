// SPDX-License-Identifier: Apache-2.0
// The products of test kernels.
#pragma once

#include <cmath>

namespace assay {

/// Sum of a[i] * b[i] in fp32: eight chains of fma, so that none waits for the one before (a third
/// of the time of one chain), then their sum.
inline float dot(const float *a, const float *b, int count) {
  float chain[8] = {};
  int i = 0;
  for (; i + 8 <= count; i += 8)
    for (int lane = 0; lane < 8; ++lane)
      chain[lane] = std::fma(a[i + lane], b[i + lane], chain[lane]);
  float sum = 0;
  for (; i < count; ++i)
    sum = std::fma(a[i], b[i], sum);
  for (const float part : chain)
    sum += part;
  return sum;
}

} // namespace assay
