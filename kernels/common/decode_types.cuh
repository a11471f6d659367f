// SPDX-License-Identifier: Apache-2.0
// Which element types meet in a decode kernel.
#pragma once

#include <type_traits>

#include "kernels/arch/convert.cuh"

namespace assay::ASSAY_TARGET {

/// Q and O are `QueryElement` (bf16 or fp16), the cache holds `KvElement`: the same, or fp8.
///
/// fp8 keys and values are widened to fp16, exactly, on their way into the tensor cores, and Q and
/// P stay 16 bits wide. A bf16 query row is first multiplied by a power of two that brings its
/// largest element to [2^14, 2^15): all that fp16 then loses is below 2^-39 of that element
/// (bf16 has the shorter significand). P in fp16 carries three bits more than in bf16.
template <class QueryElement, class KvElement>
struct DecodeTypes {
  using Query = QueryElement;
  using Kv = KvElement;
  static constexpr bool kFp8 = sizeof(Kv) == 1;
  using Mma = std::conditional_t<kFp8, arch::fp16, Kv>; // what the tensor cores multiply
  static constexpr bool kScaledQuery = !std::is_same_v<Query, Mma>;
  static constexpr int kChunk = 16 / sizeof(Kv); // cache elements in 16 bytes
};

} // namespace assay::ASSAY_TARGET
