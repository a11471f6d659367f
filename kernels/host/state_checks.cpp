// SPDX-License-Identifier: Apache-2.0
#include "kernels/host/state_checks.h"

namespace assay {

assay_status check_state_type(assay_dtype dtype, int32_t head_dim) {
  constexpr int32_t kMaxHeadDim = 512;
  if (dtype != ASSAY_FP16 && dtype != ASSAY_BF16 && dtype != ASSAY_FP32 && dtype != ASSAY_FIELD61)
    return fail(ASSAY_UNSUPPORTED, "dtype is {}, supported are 0 (fp16), 1 (bf16), 2 (fp32)",
                dtype);
  ASSAY_RETURN_IF_ERROR(check_range("head_dim", head_dim, 8, kMaxHeadDim));
  if (head_dim % 8 != 0)
    return fail(ASSAY_UNSUPPORTED, "head_dim is {}, expected a multiple of 8", head_dim);
  return ASSAY_OK;
}

assay_status check_state(const StateNames &names, const StateTensor &t, bool lse_may_be_null) {
  ASSAY_RETURN_IF_ERROR(check_pointer(names.o, t.o, 16));
  if (t.lse != nullptr || !lse_may_be_null)
    ASSAY_RETURN_IF_ERROR(check_pointer(names.lse, t.lse, 4));
  ASSAY_RETURN_IF_ERROR(check_stride(names.out_stride_row, t.out_stride_row));
  ASSAY_RETURN_IF_ERROR(check_stride(names.out_stride_head, t.out_stride_head));
  ASSAY_RETURN_IF_ERROR(check_stride_non_negative(names.lse_stride_row, t.lse_stride_row));
  return check_stride_non_negative(names.lse_stride_head, t.lse_stride_head);
}

assay_status check_output_state(const StateTensor &t, int64_t rows, int64_t heads,
                                int64_t head_dim) {
  ASSAY_RETURN_IF_ERROR(check_state(kOutputNames, t, true));
  ASSAY_RETURN_IF_ERROR(check_output_stride("out_stride_row", t.out_stride_row, rows, head_dim));
  ASSAY_RETURN_IF_ERROR(check_output_stride("out_stride_head", t.out_stride_head, heads, head_dim));
  if (t.lse == nullptr) return ASSAY_OK;
  ASSAY_RETURN_IF_ERROR(check_output_stride("lse_stride_row", t.lse_stride_row, rows, 1));
  return check_output_stride("lse_stride_head", t.lse_stride_head, heads, 1);
}

} // namespace assay
