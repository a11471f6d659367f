// SPDX-License-Identifier: Apache-2.0
// Bits of a row's elements by a counter: one text for the host and for a GPU that fills a cache,
// where products and sums must not be contracted (--fmad=false).
#pragma once

#include <cmath>
#include <cstddef>
#include <cstdint>

#include "properties/call/element.h"
#include "properties/case/hash.h"

#ifdef __CUDACC__
#define ASSAY_VALUES __host__ __device__
#else
#define ASSAY_VALUES
#endif

namespace assay {

/// Who a value belongs to, logically. Values depend on this and the seed only, never on where the
/// page lies, so that moving pages keeps them.
struct LogicalIndex {
  int row;   ///< request, cascade segment or merge row
  int head;  ///< query head for q, kv head for k and v, merge head
  int token; ///< key of the row; state of a merge; 0 for q
  int dim;
};

/// What the rows of a tensor share. Plain data.
struct TensorValues {
  enum class Kind : uint8_t { kPlain, kQuery, kKey }; ///< the others: where scores are chosen
  Values values;
  uint32_t tensor; ///< its number
  Kind kind;
  Dtype dtype;
  int head_dim;
  uint64_t directions; ///< prefix of the hashes of directions
  double unit;         ///< unit of scores: head_dim * sm_scale
};

enum Tensor : uint32_t { kTensorQ = 1, kTensorK, kTensorV };

namespace row_values {

/// Sum of eight uniforms: mean 0, variance 1, |x| < 4.9. Exact in double, so it is the same on
/// every machine; libm's logarithm would not be.
ASSAY_VALUES inline double normal(uint64_t h) {
  // Eight numbers of 16 bits, two at a time.
  constexpr uint64_t kTwo = 0x0000ffff'0000ffff;
  const uint64_t g = hash_mix(h);
  const uint64_t sums = (h & kTwo) + (h >> 16 & kTwo) + (g & kTwo) + (g >> 16 & kTwo);
  const auto sum = static_cast<int32_t>((sums & 0xffff'ffff) + (sums >> 32));
  return (sum / 65536.0 - 4.0) * 1.224744871391589;
}
ASSAY_VALUES inline double uniform(uint64_t h) { return static_cast<double>(h >> 11) * 0x1p-53; }

ASSAY_VALUES inline double small_int(double scale, uint64_t h) {
  return scale * (static_cast<double>(h % 9) - 4);
}

/// The target logit of a key, in units of sm_scale * q.k.
ASSAY_VALUES inline double target_logit(const Values &values, const LogicalIndex &at) {
  const uint64_t h = hash_values(kTensorK, values.seed, at.row, at.head, at.token);
  switch (values.regime) {
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

ASSAY_VALUES inline uint32_t subnormal_bits(Dtype dtype, uint64_t h) {
  constexpr int kFractionBits[] = {10, 7, 23, 3, 2}; // by Dtype
  int fraction_bits = kFractionBits[static_cast<int>(dtype)];
  int width = element_size(dtype) * 8;
  uint32_t sign = static_cast<uint32_t>(h >> 63) << (width - 1);
  return sign | (1u + static_cast<uint32_t>(h % ((1u << fraction_bits) - 1)));
}

ASSAY_VALUES inline bool is_peak(int dim) { return dim % 8 == 0; }

/// The largest magnitude of a row is a power of two, 1/4 to 8.
ASSAY_VALUES inline double peaked_value(const Values &values, uint64_t h, const LogicalIndex &at) {
  const int top = static_cast<int>(hash_values(values.seed, at.row, at.head) % 6) - 2;
  const double sign = h & 1 ? -1.0 : 1.0;
  if (is_peak(at.dim)) return ldexp(sign, top);
  return ldexp(sign * (1.0 + uniform(hash_mix(h))), top - 17 - static_cast<int>(h / 2 % 12));
}

/// Regimes that do not depend on scores; `scale` is 2^exponent.
ASSAY_VALUES inline double plain_value(const Values &values, double scale, Dtype dtype, uint64_t h,
                                       const LogicalIndex &at, int d) {
  switch (values.regime) {
  case Regime::kBinary:
    return scale * static_cast<double>(h & 1);
  case Regime::kSmallInt:
    return small_int(scale, h);
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
    return ldexp(normal(h), static_cast<int>(hash_mix(h) % 21) - 10);
  case Regime::kPeaked:
    return scale * peaked_value(values, h, at);
  case Regime::kOffPeak:
    return is_peak(at.dim) ? 0.0 : scale * normal(h);
  default:
    return 0;
  }
}

} // namespace row_values

/// The bits of a row of head_dim elements. What all its elements share is computed once: drawn
/// cases have millions of elements.
class RowValues {
public:
  ASSAY_VALUES RowValues(const TensorValues &tensor, const LogicalIndex &at)
      : of_(tensor), at_(at),
        prefix_(hash_values(tensor.tensor, tensor.values.seed, at.row, at.head, at.token)),
        scale_(ldexp(1.0, tensor.values.exponent)) {
    if (of_.kind == Kind::kKey) logit_ = row_values::target_logit(of_.values, at) / of_.unit;
  }

  /// The values of the row that `at` names; at.dim does not matter.
  static RowValues query(const Problem &p, const LogicalIndex &at);
  static RowValues key(const Problem &p, const LogicalIndex &at);
  static RowValues value(const Problem &p, const LogicalIndex &at); ///< also o of a merge input

  ASSAY_VALUES uint32_t bits(int dim) const {
    if (of_.kind == Kind::kKey)
      return to_bits(of_.dtype, static_cast<float>(direction(dim) * logit_));
    const uint64_t h = hash_mix(prefix_ ^ static_cast<uint64_t>(dim));
    if (of_.kind == Kind::kQuery)
      return to_bits(of_.dtype, static_cast<float>(direction(dim) + row_values::normal(h) / 16));
    if (of_.values.regime == Regime::kSubnormal) return row_values::subnormal_bits(of_.dtype, h);
    LogicalIndex at = at_;
    at.dim = dim;
    return to_bits(of_.dtype, static_cast<float>(row_values::plain_value(
                                  of_.values, scale_, of_.dtype, h, at, of_.head_dim)));
  }
  /// All of them, elements of `size` bytes.
  void write(std::byte *to, int size) const;

private:
  using Kind = TensorValues::Kind;
  template <class Bits, class Of>
  void write_each(std::byte *to, Of bits_of) const;
  template <class Narrow>
  void write_narrow(std::byte *to, Narrow narrow) const;
  ASSAY_VALUES double direction(int dim) const {
    return hash_mix(of_.directions ^ static_cast<uint64_t>(dim)) & 1 ? -1.0 : 1.0;
  }

  TensorValues of_;
  LogicalIndex at_;
  uint64_t prefix_;  ///< prefix of the hashes of its elements
  double scale_;     ///< 2^exponent
  double logit_ = 0; ///< magnitude of the elements of kKey
};

TensorValues query_values(const Problem &p);
TensorValues key_values(const Problem &p);
TensorValues value_values(const Problem &p);

} // namespace assay
