// SPDX-License-Identifier: Apache-2.0
#include "oracle/tests/emulated_operands.h"

#include <algorithm>
#include <cmath>

#include "oracle/exact/dtype.h"

namespace assay::oracle::test {

void round_query(std::vector<float> &q, const Format &format) {
  float largest = 0.0f;
  for (float x : q)
    largest = std::max(largest, std::fabs(x));
  if (largest == 0.0f) return;
  for (float &x : q)
    x = Ops::round(format, x / largest) * largest;
}

float scale_query(std::vector<float> &q) {
  float largest = 0.0f;
  for (float x : q)
    largest = std::max(largest, std::fabs(x));
  if (largest == 0.0f) return 1.0f;
  const int exponent = 14 - std::ilogb(largest);
  for (float &x : q)
    x = static_cast<float>(
        round_to(format_of(ASSAY_FP16), std::ldexp(static_cast<double>(x), exponent)));
  return std::ldexp(1.0f, -exponent);
}

float round_scaled_query(std::vector<float> &q, const ScoreScales &scales, const Ops &ops,
                         uint64_t seed, const Format *format) {
  const auto [sm_scale, log2e, k_scale] = scales;
  const auto part = seed >> 41 & 3;
  const float factor = part == 0   ? 1.0f
                       : part == 1 ? sm_scale
                       : part == 2 ? sm_scale * log2e
                                   : sm_scale * log2e * k_scale;
  for (float &x : q)
    x = format != nullptr ? ops.narrow(*format, x * factor) : x * factor;
  return part == 0   ? sm_scale * log2e * k_scale
         : part == 1 ? log2e * k_scale
         : part == 2 ? k_scale
                     : 1.0f;
}

KeySet scaled_and_rounded(const KeySet &keys, RowFeatures &features, const Ops &ops,
                          const Format &format) {
  KeySet out = keys;
  for (float &x : out.k)
    x = ops.narrow(format, x * features.k_scale);
  for (float &x : out.v)
    x = ops.narrow(format, x * features.v_scale);
  features.k_scale = features.v_scale = 1.0f;
  return out;
}

} // namespace assay::oracle::test
