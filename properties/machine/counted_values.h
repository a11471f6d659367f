// SPDX-License-Identifier: Apache-2.0
// Elements by a counter: the same on a GPU and here.
#pragma once

#include <cstdint>

#include "properties/call/row_values.h"

namespace assay {

/// Bits of an element of magnitude 2^-3 to 2, of either sign: bf16, or e4m3 where `fp8`.
ASSAY_VALUES inline uint16_t element_bits(uint64_t i, bool fp8) {
  uint64_t z = (i + 1) * 0x9E3779B97F4A7C15ull;
  z = (z ^ (z >> 30)) * 0xBF58476D1CE4E5B9ull;
  z ^= z >> 27;
  const auto below = static_cast<unsigned>(z >> 16 & 3); // the exponent below that of 1
  if (fp8) return static_cast<uint16_t>((z & 0x80) | (0x38 - (below << 3)) | (z >> 20 & 7));
  return static_cast<uint16_t>((z & 0x8000) | (0x3F80 - (below << 7)) | (z >> 20 & 0x7F));
}

} // namespace assay
