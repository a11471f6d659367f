// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "kernels/common/params.h"

#include <cstdint>

namespace assay {

/// A [rows, heads, head_dim] tensor of states, and their LSEs. Strides count elements.
struct StateTensor {
  void *o;
  float *lse;
  int64_t out_stride_row, out_stride_head;
  int64_t lse_stride_row, lse_stride_head;

  ASSAY_FIELDS(o, lse, out_stride_row, out_stride_head, lse_stride_row, lse_stride_head)
};

} // namespace assay
