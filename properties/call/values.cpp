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

enum Tensor : uint32_t {
  kTensorQ = 1,
  kTensorK,
  kTensorV,
  kTensorLse,
  kTensorPoison,
  kTensorKeyScale,
  kTensorValueScale,
  kTensorSlope,
  kTensorSink
};

/// Sum of eight uniforms: mean 0, variance 1, |x| < 4.9. Exact in double, so it is the same on
/// every machine; libm's logarithm would not be.
double normal(uint64_t h) {
  int64_t sum = 0;
  for (uint64_t word : {h, hash_mix(h)})
    for (int i = 0; i < 4; ++i)
      sum += static_cast<int64_t>(word >> (16 * i) & 0xffff);
  return (static_cast<double>(sum) / 65536.0 - 4.0) * 1.224744871391589;
}
double uniform(uint64_t h) { return static_cast<double>(h >> 11) * 0x1p-53; }

bool is_score_regime(Regime r) { return r >= Regime::kRising && r <= Regime::kGaps; }

/// The target logit of a key, in units of sm_scale * q.k.
double target_logit(const Problem &p, const LogicalIndex &at) {
  uint64_t h = hash_values(kTensorK, p.k.seed, at.row, at.head, at.token);
  switch (p.k.regime) {
  case Regime::kRising:
    return 0.75 * at.token;
  case Regime::kFalling:
    return -0.75 * at.token;
  case Regime::kPlateau:
    return 4.0 * (at.token / 16);
  case Regime::kDominant:
    return h % 37 == 0 ? 60.0 : normal(h);
  case Regime::kTies:
    return 2.0;
  case Regime::kOffset:
    return 3000.0 + normal(h);
  case Regime::kHuge:
    return 2e5 * uniform(h) - 1e5;
  case Regime::kBelow:
    return -3000.0 + normal(h);
  case Regime::kSlope:
    return 0.01 * at.token;
  case Regime::kGaps: // in natural units: times ln 2
    return h % 23 == 0 ? 0.693 * (40.0 + 86.0 * uniform(hash_mix(h))) : normal(h);
  default:
    return 0;
  }
}

uint32_t subnormal_bits(Dtype dtype, uint64_t h) {
  static constexpr int kFractionBits[] = {10, 7, 23, 3, 2}; // by Dtype
  int fraction_bits = kFractionBits[static_cast<int>(dtype)];
  int width = element_size(dtype) * 8;
  uint32_t sign = static_cast<uint32_t>(h >> 63) << (width - 1);
  return sign | (1u + static_cast<uint32_t>(h % ((1u << fraction_bits) - 1)));
}

bool is_peak(int dim) { return dim % 8 == 0; }

/// The largest magnitude of a row is a power of two, 1/4 to 8.
double peaked_value(const Values &values, uint64_t h, const LogicalIndex &at) {
  const int top = static_cast<int>(hash_values(values.seed, at.row, at.head) % 6) - 2;
  const double sign = h & 1 ? -1.0 : 1.0;
  if (is_peak(at.dim)) return std::ldexp(sign, top);
  return std::ldexp(sign * (1.0 + uniform(hash_mix(h))), top - 17 - static_cast<int>(h / 2 % 12));
}

/// Regimes that do not depend on scores; `scale` is 2^exponent.
double plain_value(const Values &values, double scale, Dtype dtype, uint64_t h,
                   const LogicalIndex &at, int d) {
  switch (values.regime) {
  case Regime::kBinary:
    return scale * static_cast<double>(h & 1);
  case Regime::kSmallInt:
    return scale * (static_cast<double>(h % 9) - 4);
  case Regime::kNormal:
    return scale * normal(h);
  case Regime::kOneHot:
    return scale * (at.token % d == at.dim);
  case Regime::kConstant:
    return scale * static_cast<double>(1 + hash_values(values.seed, at.head, at.dim) % 7);
  case Regime::kShifted:
    return normal(h) + 100.0;
  case Regime::kSmall:
    return normal(h) * 1e-3;
  case Regime::kNearMax: {
    // Accumulators hold unnormalised sums: leave 2^15 keys of room where the element type has the
    // exponent range of fp32.
    double top = dtype == Dtype::kBf16 || dtype == Dtype::kFp32 ? 0x1p112 : largest_finite(dtype);
    return (h & 1 ? -1 : 1) * top * (0.5 + 0.5 * uniform(h));
  }
  case Regime::kWide:
    return std::ldexp(normal(h), static_cast<int>(hash_mix(h) % 21) - 10);
  case Regime::kPeaked:
    return scale * peaked_value(values, h, at);
  case Regime::kOffPeak:
    return is_peak(at.dim) ? 0.0 : scale * normal(h);
  default:
    return 0;
  }
}

} // namespace

RowValues::RowValues(const Problem &p, const Values &values, uint32_t tensor,
                     const LogicalIndex &at, Dtype dtype)
    : dtype_(dtype), values_(&values), at_(at), head_dim_(p.head_dim),
      prefix_(hash_values(tensor, values.seed, at.row, at.head, at.token)),
      scale_(std::ldexp(1.0, values.exponent)) {}

RowValues RowValues::query(const Problem &p, const LogicalIndex &at) {
  RowValues out(p, p.q, kTensorQ, at, p.dtype);
  if (p.q.regime == Regime::kZero || !is_score_regime(p.k.regime)) return out;
  out.kind_ = Kind::kQuery;
  out.directions_ = hash_values(p.k.seed, 0xd1u);
  return out;
}

RowValues RowValues::key(const Problem &p, const LogicalIndex &at) {
  RowValues out(p, p.k, kTensorK, at, kv_dtype(p));
  if (!is_score_regime(p.k.regime)) return out;
  out.kind_ = Kind::kKey;
  out.directions_ = hash_values(p.k.seed, 0xd1u);
  out.logit_ = target_logit(p, at) / (p.head_dim * double(sm_scale(p)));
  return out;
}

RowValues RowValues::value(const Problem &p, const LogicalIndex &at) {
  return {p, p.v, kTensorV, at, kv_dtype(p)};
}

double RowValues::direction(int dim) const {
  return hash_mix(directions_ ^ static_cast<uint64_t>(dim)) & 1 ? -1.0 : 1.0;
}

uint32_t RowValues::bits(int dim) const {
  if (kind_ == Kind::kKey) return to_bits(dtype_, static_cast<float>(direction(dim) * logit_));
  const uint64_t h = hash_mix(prefix_ ^ static_cast<uint64_t>(dim));
  if (kind_ == Kind::kQuery)
    return to_bits(dtype_, static_cast<float>(direction(dim) + normal(h) / 16));
  if (values_->regime == Regime::kSubnormal) return subnormal_bits(dtype_, h);
  LogicalIndex at = at_;
  at.dim = dim;
  return to_bits(dtype_,
                 static_cast<float>(plain_value(*values_, scale_, dtype_, h, at, head_dim_)));
}

template <class Bits, class Of>
void RowValues::write_each(std::byte *to, Of bits_of) const {
  for (int i = 0; i < head_dim_; ++i) {
    const auto bits = static_cast<Bits>(bits_of(i));
    std::memcpy(to + static_cast<size_t>(i) * sizeof(Bits), &bits, sizeof(Bits));
  }
}

void RowValues::write(std::byte *to, int size) const {
  const auto any = [this](int dim) { return bits(dim); };
  if (size == 4) return write_each<uint32_t>(to, any);
  if (size == 1) return write_each<uint8_t>(to, any);
  // What most elements of drawn cases are, without a question about each.
  const bool bf16 = dtype_ == Dtype::kBf16;
  const auto plain = [this](auto narrow) {
    return [this, narrow](int dim) {
      return narrow(static_cast<float>(scale_ * normal(hash_mix(prefix_ ^ uint64_t(dim)))));
    };
  };
  const auto directed = [this](auto narrow) {
    const uint32_t up = narrow(static_cast<float>(logit_));
    const uint32_t down = narrow(static_cast<float>(-logit_));
    return [this, up, down](int dim) { return direction(dim) > 0 ? up : down; };
  };
  if (kind_ == Kind::kPlain && values_->regime == Regime::kNormal)
    return bf16 ? write_each<uint16_t>(to, plain(bf16_bits))
                : write_each<uint16_t>(to, plain(fp16_bits));
  if (kind_ == Kind::kKey)
    return bf16 ? write_each<uint16_t>(to, directed(bf16_bits))
                : write_each<uint16_t>(to, directed(fp16_bits));
  write_each<uint16_t>(to, any);
}

namespace {

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
