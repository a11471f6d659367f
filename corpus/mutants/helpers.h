// SPDX-License-Identifier: Apache-2.0
// Wrong arithmetic that .mutant files call by name.
#pragma once

#include <cstdint>

namespace assay::mutants {

inline int32_t one_less(int32_t n) { return n > 0 ? n - 1 : 0; }

/// Offset of kv head `head ^ 1`, staying inside an even number of heads.
inline int64_t neighbour(int32_t head, int64_t stride) { return (head ^ 1) * stride; }

inline int64_t product_32(int32_t page, int64_t stride) {
  return static_cast<int32_t>(static_cast<uint32_t>(page) * static_cast<uint32_t>(stride));
}

inline float one_if_not_empty(float lse) { return lse == -__builtin_inff() ? 0.0f : 1.0f; }

} // namespace assay::mutants
