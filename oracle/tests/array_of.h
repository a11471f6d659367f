// SPDX-License-Identifier: Apache-2.0
// Arrays of assay_judge.h over memory of a test.
#pragma once

#include <cstdint>
#include <vector>

#include "kernels/abi/assay_judge.h"

namespace assay::oracle::test {

/** Dense unless strides are given. */
inline assay_array array(const void *data, int32_t dtype, std::vector<int64_t> shape,
                         std::vector<int64_t> stride = {}) {
  assay_array a{};
  a.data = data;
  a.dtype = dtype;
  a.dims = static_cast<int32_t>(shape.size());
  int64_t dense = 1;
  for (size_t i = shape.size(); i-- > 0; dense *= shape[i]) {
    a.shape[i] = shape[i];
    a.stride[i] = stride.empty() ? dense : stride[i];
  }
  return a;
}

} // namespace assay::oracle::test
