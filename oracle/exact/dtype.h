// SPDX-License-Identifier: Apache-2.0
// The element formats as numbers: decoding, rounding to nearest even, spacing. Independent of the
// kernels' own conversions on purpose.
#pragma once

#include <cstdint>

#include "kernels/abi/plugin.h"
#include "oracle/exact/format.h"

namespace assay::oracle {

const Format &format_of(assay_dtype dtype);

/** What a declared format rounds to, ASSAY_FORMAT_CALL to `operand`; null: it does not round. */
const Format *rounding_of(assay_format format, assay_dtype operand);

/** ASSAY_E4M3 or ASSAY_E5M2. */
bool is_fp8(assay_dtype dtype);

/** Bytes of one element. */
int element_size(assay_dtype dtype);

/** Element `index` of a buffer of `dtype`, exactly. */
float load_element(assay_dtype dtype, const void *base, int64_t index);

/** `count` elements from `base` on. */
void load_elements(assay_dtype dtype, const void *base, int count, float *out);

/** The bits of element `index`, zero-extended. */
uint32_t load_bits(assay_dtype dtype, const void *base, int64_t index);

/** Stores a value that the format represents exactly (tests and emulations round first). */
void store_element(assay_dtype dtype, void *base, int64_t index, float value);

/** A smaller magnitude than this is zero or subnormal. */
double smallest_normal(const Format &format);

} // namespace assay::oracle
