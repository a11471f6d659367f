// SPDX-License-Identifier: Apache-2.0
// Random cases with features: fp8 KV, softcap, ALiBi, sinks, windows, head_dim 256.
#pragma once

#include <array>

#include "oracle/exact/dtype.h"
#include "oracle/tests/campaign.h"

namespace assay::oracle::test {

enum class Feature { kFp8, kSoftcap, kAlibi, kSink, kWindow, kAll, kCount };

inline const char *feature_name(Feature feature) {
  static constexpr const char *kNames[] = {"fp8", "softcap", "alibi", "sink", "window", "all"};
  return kNames[static_cast<int>(feature)];
}

// K and V of the format; saturated, so that every value is a number.
inline void narrow(KeySet &keys, assay_dtype fp8) {
  uint8_t byte = 0;
  for (auto *values : {&keys.k, &keys.v}) {
    for (float &x : *values) {
      store_element(fp8, &byte, 0, x);
      x = load_element(fp8, &byte, 0);
    }
  }
  keys.k_subnormal.clear();
  keys.finite = true;
  keys.v_subnormal = false;
  keys.finish(ASSAY_FP16);
}

// What kernels of others do with an fp8 cache; a third of the cases dequantise it. Of the seed, so
// that other draws stay what they were.
inline void vary_fp8_formats(Emulation &e) {
  const uint64_t bits = e.seed >> 24;
  constexpr assay_format kFormats[] = {ASSAY_FORMAT_CALL, ASSAY_FORMAT_FP16, ASSAY_FORMAT_BF16,
                                       ASSAY_FORMAT_TF32};
  if (bits % 3 == 0) e.kv_format = kFormats[bits / 3 % 4];
  e.rounded_before_scale = bits >> 8 & 1;
  if (bits >> 9 & 1) e.partial_format = ASSAY_FORMAT_CALL + static_cast<int>((bits >> 10) % 3);
}

// Every draw is a statement of its own: which of two arguments is evaluated first is the compiler's
// choice, and a case of a seed is the same with all of them. `pick(n)`: 0 .. n - 1.
template <class Pick>
float draw_scale(Pick pick, int exponents) { // about 1
  const float mantissa = 1.0f + 0.01f * static_cast<float>(pick(100));
  return std::ldexp(mantissa, pick(exponents) - exponents / 2);
}
template <class Pick>
float draw_slope(Pick pick) {
  const float sign = pick(3) ? 1.0f : -1.0f;
  return sign * std::exp2(-0.37f * static_cast<float>(pick(25)));
}
template <class Pick>
float draw_sink(Pick pick, int exponents) {
  if (pick(6) == 0) return -INFINITY;
  const auto mantissa = static_cast<float>(pick(2001) - 1000);
  return std::ldexp(mantissa, -9 + pick(exponents));
}

inline Case draw_feature_case(Feature feature, std::mt19937_64 &random, int max_keys) {
  const auto pick = [&](int limit) {
    return static_cast<int>(random() % static_cast<uint64_t>(limit));
  };
  const auto has = [&](Feature f) { return feature == f || (feature == Feature::kAll && pick(2)); };
  const auto scale = [&] { return draw_scale(pick, 17); };
  Case c = draw_case(random, max_keys);
  if (pick(4) == 0) { // one of head_dim 256
    c.row = draw_row(c.regime, c.dtype, 1 + pick(60), 256, random);
    c.order = deal_tiles(static_cast<int>(c.row.keys.size()), c.emulation.tile, c.splits,
                         c.emulation.states, c.emulation.p_parts);
  }
  if (c.emulation.seed >> 45 & 1) vary_products(c.emulation);
  RowFeatures f;
  if (has(Feature::kFp8)) {
    f.fp8 = true;
    narrow(c.row.keys, pick(2) ? ASSAY_E4M3 : ASSAY_E5M2);
    if (pick(4)) f.k_scale = scale();
    if (pick(4)) f.v_scale = pick(2) ? scale() : -scale();
    vary_fp8_formats(c.emulation);
  }
  if (has(Feature::kSoftcap))
    f.softcap = std::array{0.3f, 1.0f, 30.0f, 50.0f, 1000.0f}[static_cast<size_t>(pick(5))];
  if (has(Feature::kAlibi)) {
    f.alibi = true;
    f.slope = draw_slope(pick);
  }
  if (has(Feature::kSink)) {
    f.sinks = true;
    f.sink = draw_sink(pick, 14);
  }
  if (has(Feature::kWindow)) { // the window begins anywhere in a tile
    const int n = static_cast<int>(c.row.keys.size()), hidden = pick(n);
    const auto cut = static_cast<int64_t>(hidden) * c.row.keys.head_dim;
    c.order = clip_order(c.order, hidden, n);
    c.row.keys.k.erase(c.row.keys.k.begin(), c.row.keys.k.begin() + cut);
    c.row.keys.v.erase(c.row.keys.v.begin(), c.row.keys.v.begin() + cut);
    c.row.keys.finish(operand_dtype(c.dtype, f.fp8));
  }
  c.set_features(f);
  return c;
}

} // namespace assay::oracle::test
