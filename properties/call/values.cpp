// SPDX-License-Identifier: Apache-2.0
#include "properties/call/values.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstring>
#include <limits>

#include "properties/call/element.h"
#include "properties/case/hash.h"

namespace assay {
namespace {

/// Beside those of row_values.h.
enum OtherTensor : uint32_t {
  kTensorLse = kTensorV + 1,
  kTensorPoison,
  kTensorKeyScale,
  kTensorValueScale,
  kTensorSlope,
  kTensorSink
};

using row_values::normal;
using row_values::uniform;

double scale_magnitude(const Problem &p, uint64_t h) {
  if (p.kv_scales == KvScaleRegime::kUnit) return 1.0;
  double scale = std::ldexp(1.0 + uniform(h), -1 + static_cast<int>(h & 1));
  if (p.kv_scales == KvScaleRegime::kSpread)
    scale = std::ldexp(scale, static_cast<int>(hash_mix(h) % 17) - 8);
  return scale;
}

} // namespace

float key_scale_of(const Problem &p, int i) {
  return static_cast<float>(scale_magnitude(p, hash_values(kTensorKeyScale, p.feature_seed, i)));
}

float value_scale_of(const Problem &p, int i) {
  uint64_t h = hash_values(kTensorValueScale, p.feature_seed, i);
  double scale = scale_magnitude(p, h);
  bool negative = p.kv_scales == KvScaleRegime::kSpread && (h & 2) != 0;
  return static_cast<float>(negative ? -scale : scale);
}

float slope_of(const Problem &p, int head) {
  if (p.alibi == Alibi::kStandard)
    return static_cast<float>(std::exp2(-8.0 * (head + 1) / p.num_qo_heads()));
  return static_cast<float>(2 * uniform(hash_values(kTensorSlope, p.feature_seed, head)) - 1);
}

float sink_of(const Problem &p, int head) {
  constexpr float kEmpty = -std::numeric_limits<float>::infinity();
  uint64_t h = hash_values(kTensorSink, p.feature_seed, head);
  bool empty = p.sinks == Sinks::kAllEmpty || (p.sinks == Sinks::kSomeEmpty && (h & 1) != 0);
  if (empty) return kEmpty;
  if (p.sinks == Sinks::kHuge) return static_cast<float>(2000 * uniform(h) - 1000);
  return static_cast<float>(3 * normal(h));
}

float state_lse(const Problem &p, const LogicalIndex &at, int states_in_row) {
  constexpr float kEmpty = -std::numeric_limits<float>::infinity();
  uint64_t h = hash_values(kTensorLse, p.v.seed, at.row, at.head, at.token);
  uint64_t row = hash_values(kTensorLse, p.v.seed, at.row, at.head, 0xa11eu);
  switch (p.lse_regime) {
  case LseRegime::kEqual:
    return 1.5f;
  case LseRegime::kNormal:
    return static_cast<float>(normal(h));
  case LseRegime::kSpread:
    return static_cast<float>(200 * uniform(h) - 100);
  case LseRegime::kHuge:
    return static_cast<float>(2e5 * uniform(h) - 1e5);
  case LseRegime::kSomeEmpty:
    return h & 1 ? kEmpty : static_cast<float>(normal(hash_mix(h)));
  case LseRegime::kOneAlive:
    return static_cast<int>(row % std::max(1, states_in_row)) == at.token
               ? static_cast<float>(normal(h))
               : kEmpty;
  case LseRegime::kAllEmpty:
    return kEmpty;
  }
  return kEmpty;
}

uint32_t poison_bits(Poison poison, Dtype dtype, uint64_t salt) {
  constexpr float kInf = std::numeric_limits<float>::infinity();
  constexpr uint32_t kInfinities[] = {0x7c00, 0x7f80, std::bit_cast<uint32_t>(kInf), 0x7f,
                                      0x7c}; // by Dtype; e4m3 has NaN only
  constexpr uint32_t kMasks[] = {0xffff, 0xffff, 0xffffffff, 0xff, 0xff};
  uint32_t inf = kInfinities[static_cast<int>(dtype)];
  switch (poison) {
  case Poison::kNan:
    return inf | (element_size(dtype) == 1 ? 0x01 : 0x41);
  case Poison::kInf:
    return inf;
  case Poison::kHugeFinite:
    return to_bits(dtype, largest_finite(dtype));
  case Poison::kRandomBits:
    break;
  }
  uint64_t h = hash_values(kTensorPoison, salt);
  return static_cast<uint32_t>(h) & kMasks[static_cast<int>(dtype)];
}

int32_t poison_page(Poison poison, int pool_pages, uint64_t salt) {
  switch (poison) {
  case Poison::kNan:
    return std::numeric_limits<int32_t>::min();
  case Poison::kInf:
    return std::numeric_limits<int32_t>::max();
  case Poison::kHugeFinite:
    return pool_pages;
  case Poison::kRandomBits:
    break;
  }
  return static_cast<int32_t>(hash_values(kTensorPoison, salt));
}

} // namespace assay
