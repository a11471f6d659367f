// SPDX-License-Identifier: Apache-2.0
#include "oracle/exact/row_input.h"

#include <algorithm>
#include <cmath>

#include "oracle/exact/dtype.h"

namespace assay::oracle {

void KeySet::finish(assay_dtype operand) {
  const Format &format = format_of(operand);
  k_subnormal.assign(size(), 0);
  for (size_t at = 0; at < k.size(); ++at) {
    finite = finite && std::isfinite(k[at]);
    if (is_subnormal(format, k[at])) k_subnormal[at / static_cast<size_t>(head_dim)] = 1;
  }
  const auto width = static_cast<size_t>(value_dim());
  v_min.assign(width, INFINITY);
  v_max.assign(width, -INFINITY);
  for (size_t at = 0; at < v.size(); ++at) {
    const size_t i = at % width;
    finite = finite && std::isfinite(v[at]);
    v_subnormal = v_subnormal || is_subnormal(format, v[at]);
    v_min[i] = std::min<double>(v_min[i], v[at]);
    v_max[i] = std::max<double>(v_max[i], v[at]);
  }
}

KeySet KeySet::with_sink(assay_dtype operand) const {
  KeySet keys = *this;
  keys.sink = true;
  keys.k.resize(k.size() + static_cast<size_t>(head_dim), 0.0f);
  keys.v.resize(v.size() + static_cast<size_t>(value_dim()), 0.0f);
  keys.finish(operand);
  return keys;
}

bool RowFeatures::has_sink() const { return sinks && sink > -INFINITY; }

assay_dtype operand_dtype(assay_dtype dtype, bool fp8, assay_format kv_format) {
  if (!fp8 || is_fp8(dtype) || kv_format == ASSAY_FORMAT_CALL) return dtype;
  return kv_format == ASSAY_FORMAT_BF16 ? ASSAY_BF16 : ASSAY_FP16;
}

} // namespace assay::oracle
