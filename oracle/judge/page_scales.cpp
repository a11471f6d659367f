// SPDX-License-Identifier: Apache-2.0
#include "oracle/judge/page_scales.h"

#include <string>

#include "oracle/exact/dtype.h"
#include "oracle/judge/arrays.h"

namespace assay::oracle {

PageScales::PageScales(const char *name, const assay_array &array, const ArrayView &cache) {
  const ArrayView scale(name, array);
  const bool int8 = cache.dtype() == ASSAY_INT8;
  if (!scale.given()) {
    if (int8) scale.fail(" is missing, int8 caches have one");
    return;
  }
  if (scale.dims() < 3) {
    if (!int8) return;
    scale.require({{"1 or kv_heads", scale.size(0) == 1 ? 1 : cache.size(2)}}, {ASSAY_FP32});
    tokens_ = {static_cast<const float *>(scale.data()), 1, 0,
               scale.size(0) == 1 ? 0 : scale.stride(0), 0};
    return;
  }
  if (cache.dtype() != ASSAY_E4M3 && !int8)
    scale.unsupported(" is one of tokens, judged with e4m3 and int8 caches");
  const int64_t blocks = scale.dims() == 4 ? scale.size(3) : 1;
  if (scale.dims() == 4)
    scale.require({{"pages", cache.size(0)},
                   {"slots", cache.size(1)},
                   {"kv_heads", cache.size(2)},
                   {"blocks"}},
                  {ASSAY_FP32});
  else
    scale.require({{"pages", cache.size(0)}, {"slots", cache.size(1)}, {"kv_heads", cache.size(2)}},
                  {ASSAY_FP32});
  if (blocks < 1 || cache.size(3) % blocks != 0)
    scale.fail(" has " + std::to_string(blocks) + " blocks, which do not divide " +
               std::to_string(cache.size(3)) + " elements");
  tokens_ = {static_cast<const float *>(scale.data()), static_cast<int>(blocks), scale.stride(1),
             scale.stride(2), scale.dims() == 4 ? scale.stride(3) : 0};
  stride_page_ = scale.stride(0);
}

void require_token_scales(const AttentionRows &rows, const assay_arithmetic &arithmetic) {
  const KeyPool &pool = rows.pools[0];
  if (rows.scale_blocks() == 0) return;
  if (rows.q_fp8())
    throw ArrayError(ASSAY_UNSUPPORTED,
                     "scales of tokens are given with fp8 q, which is not judged");
  if (pool.k_scales.data == nullptr || pool.v_scales.data == nullptr)
    throw ArrayError(ASSAY_INVALID_ARGUMENT,
                     "one of k_scale and v_scale is of tokens, expected both");
  // A weight times a small scale may be subnormal in a format of few exponents.
  const Format *format = rounding_of(arithmetic.p_format, rows.q_dtype);
  if (format != nullptr && format->min_exponent > -126)
    throw ArrayError(
        ASSAY_UNSUPPORTED,
        "v_scale is one of tokens, judged where weights stay fp32 or are rounded to bf16");
}

} // namespace assay::oracle
