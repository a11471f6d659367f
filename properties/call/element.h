// SPDX-License-Identifier: Apache-2.0
// Elements of every dtype as the bits that they are.
#pragma once

#include <cstdint>

#include "properties/case/problem.h"

namespace assay {

/// Element bits of a dtype, in the low bits of a word.
uint32_t to_bits(Dtype dtype, float value); ///< round to nearest even; saturates to finite
float from_bits(Dtype dtype, uint32_t bits);
int element_size(Dtype dtype);
float largest_finite(Dtype dtype);

} // namespace assay
