// SPDX-License-Identifier: Apache-2.0
#include "oracle/exact/row_input.h"

#include <algorithm>
#include <cmath>

#include "oracle/exact/dtype.h"

namespace assay::oracle {

void KeySet::finish(assay_dtype operand) {
  const double normal = smallest_normal(format_of(operand));
  const auto subnormal = [normal](float x) { return x != 0.0f && std::fabs(x) < normal; };
  // Calls have millions of elements. These loops have no early exit, so that a compiler can
  // vectorise them.
  bool all_finite = true, any_subnormal = false;
  k_subnormal.assign(size(), 0);
  const auto dim = static_cast<size_t>(head_dim);
  for (size_t row = 0; row < k_subnormal.size(); ++row) {
    bool any = false;
    for (size_t i = 0; i < dim; ++i) {
      const float x = k[row * dim + i];
      all_finite &= std::isfinite(x);
      any |= subnormal(x);
    }
    k_subnormal[row] = any;
  }
  const auto width = static_cast<size_t>(value_dim());
  v_min.assign(width, INFINITY);
  v_max.assign(width, -INFINITY);
  for (size_t row = 0; row * width < v.size(); ++row)
    for (size_t i = 0; i < width; ++i) {
      const float x = v[row * width + i];
      all_finite &= std::isfinite(x);
      any_subnormal |= subnormal(x);
      v_min[i] = std::min<double>(v_min[i], x);
      v_max[i] = std::max<double>(v_max[i], x);
    }
  finite = finite && all_finite;
  v_subnormal = v_subnormal || any_subnormal;
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
  if (kv_format == ASSAY_FORMAT_TF32) return ASSAY_FP32;
  return kv_format == ASSAY_FORMAT_BF16 ? ASSAY_BF16 : ASSAY_FP16;
}

} // namespace assay::oracle
