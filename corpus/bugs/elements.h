// SPDX-License-Identifier: Apache-2.0
// Rows of elements in global memory, eight at a time.
#pragma once

#include <cstdint>

#include "kernels/abi/plugin.h"

namespace assay::bugs {

inline constexpr int kPiece = 8;     ///< elements of one access
inline constexpr int kMaxDims = 512; ///< the largest number of dims of a row
inline constexpr float kLog2E = 1.44269504f, kLn2 = 0.69314718f;

/// Elements at .. at + kPiece of `base`; `at` is a multiple of kPiece.
void load_piece(const void *base, int64_t at, assay_dtype dtype, float *out);
void store_piece(void *base, int64_t at, assay_dtype dtype, const float *in);
/// `dims` of them, a multiple of kPiece.
void load_row(const void *base, int64_t at, assay_dtype dtype, int dims, float *out);
void store_row(void *base, int64_t at, assay_dtype dtype, int dims, const float *in);

/// To nearest even, and back.
float as_bf16(float x);

} // namespace assay::bugs
