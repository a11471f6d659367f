// SPDX-License-Identifier: Apache-2.0
// Checks of attention states as arguments: what merges and exchanges take and give.
#pragma once

#include "kernels/abi/plugin.h"
#include "kernels/common/state_tensor.h"
#include "kernels/host/checks.h"

namespace assay {

/// What the parameters call the fields of a state.
struct StateNames {
  const char *o, *lse;
  const char *out_stride_row, *out_stride_head;
  const char *lse_stride_row, *lse_stride_head;
};
inline constexpr StateNames kOutputNames = {
    "out", "lse", "out_stride_row", "out_stride_head", "lse_stride_row", "lse_stride_head"};

/// fp16, bf16, fp32 or exact numbers, and a multiple of 8 up to 512. What exact numbers need is
/// left to check_field.
assay_status check_state_type(assay_dtype dtype, int32_t head_dim);
/// Bytes of an element of o. Exact numbers are handles.
inline int64_t state_element_bytes(assay_dtype dtype) {
  return dtype == ASSAY_FP32 || dtype == ASSAY_FIELD61 ? 4 : 2;
}

assay_status check_state(const StateNames &names, const StateTensor &state, bool lse_may_be_null);
/// Checks a result of `rows` times `heads` states.
assay_status check_output_state(const StateTensor &state, int64_t rows, int64_t heads,
                                int64_t head_dim);

} // namespace assay
