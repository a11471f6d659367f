// SPDX-License-Identifier: Apache-2.0
// Elements in memory as the reference kernels read and write them.
#pragma once

#include <cstdint>
#include <limits>

#include "kernels/abi/assay.h"

namespace assay::reference {

inline constexpr float kNegInf = -std::numeric_limits<float>::infinity();

float load(const void *base, int64_t index, assay_dtype dtype);
/// `count` of them from `index` on.
void load_row(const void *base, int64_t index, int count, assay_dtype dtype, float *out);
void store(void *base, int64_t index, assay_dtype dtype, float x);

} // namespace assay::reference
