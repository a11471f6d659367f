// SPDX-License-Identifier: Apache-2.0
// The element types of a decode kernel.
#pragma once

#include <type_traits>

#include "kernels/arch/convert.cuh"

namespace assay::ASSAY_TARGET {

/// Q and O are `QueryElement` (bf16 or fp16). The cache holds `KvElement`: the same type, or fp8.
///
/// fp8 keys and values are widened to fp16, which is exact, on their way into the tensor cores. Q
/// and P stay 16 bits wide. A bf16 query row is first multiplied by a power of two that brings its
/// largest element to [2^14, 2^15). fp16 has the longer significand: what it loses of that row is
/// below 2^-39 of the largest element. P in fp16 has three bits more than in bf16.
template <class QueryElement, class KvElement>
struct DecodeTypes {
  using Query = QueryElement;
  using Kv = KvElement;
  static constexpr bool kFp8 = sizeof(Kv) == 1;
  using Mma = std::conditional_t<kFp8, arch::fp16, Kv>; // what the tensor cores multiply
  static constexpr bool kScaledQuery = !std::is_same_v<Query, Mma>;
  static constexpr int kChunk = 16 / sizeof(Kv); // cache elements in 16 bytes
};

/// A power of two and its inverse.
struct QueryScale {
  float scale, inverse;
};

/// What brings `largest`, the largest magnitude of a query row, to [2^14, 2^15): 2^(141 - field),
/// where `field` is its exponent field. A row below 2^-112 gets the largest scale there is, and
/// loses less than 2^-149. A row of zeros or with an infinity is not scaled.
ASSAY_DEVICE QueryScale query_scale(float largest) {
  int field = static_cast<int>(arch::float_to_bits(largest) >> 23);
  field = field < 15 ? 15 : field;
  if (largest == 0.0f || field == 255) field = 141;
  return {arch::bits_to_float(static_cast<uint32_t>(268 - field) << 23),
          arch::bits_to_float(static_cast<uint32_t>(field - 14) << 23)};
}

} // namespace assay::ASSAY_TARGET
