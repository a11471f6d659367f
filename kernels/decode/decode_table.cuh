// SPDX-License-Identifier: Apache-2.0
// The decode kernels of ASSAY_TARGET: finds the instantiation that a call needs.
#pragma once

#include "kernels/arch/convert.cuh"
#include "kernels/blocks/find_instantiation.h"
#include "kernels/blocks/plan_launch.cuh"
#include "kernels/decode/decode_launch.h"
#include "kernels/decode/plan_call.h"

namespace assay::ASSAY_TARGET {

struct DecodeInstantiation {
  assay_dtype dtype, kv_dtype;
  int head_dim;
  Launch<PagedV1Call> v1;
  Launch<SplitKvCall> v2;
};

inline constexpr DecodeInstantiation kDecode[] = {
#define ASSAY_INSTANTIATE(query, dtype, kv, kv_dtype, head_dim)                                    \
  {dtype, kv_dtype, head_dim, &DecodeLaunch<arch::query, arch::kv, head_dim>::v1,                  \
   &DecodeLaunch<arch::query, arch::kv, head_dim>::v2},
#if ASSAY_IS_CUDA
#define ASSAY_INSTANTIATE_SIMT(...)
#else
#define ASSAY_INSTANTIATE_SIMT ASSAY_INSTANTIATE
#endif
#include "kernels/decode/instantiations.def"
#undef ASSAY_INSTANTIATE
#undef ASSAY_INSTANTIATE_SIMT
};

inline assay_status find_paged_attention_v1(const PagedV1Call &call, Launch<PagedV1Call> &launch) {
  const DecodeInstantiation *found = nullptr;
  ASSAY_RETURN_IF_ERROR(find_instantiation(kDecode, call.paged.shape, found));
  launch = found->v1;
  return ASSAY_OK;
}

inline assay_status find_paged_attention_v2(const SplitKvCall &call, Launch<SplitKvCall> &launch) {
  const DecodeInstantiation *found = nullptr;
  ASSAY_RETURN_IF_ERROR(find_instantiation(kDecode, call.paged.shape, found));
  launch = found->v2;
  return ASSAY_OK;
}

inline assay_status launch_paged_attention_v2_plan(const PagedV2PlanCall &call, void *stream) {
  return launch_plan_kernel(call.shape, call.seq_lens, call.plan, stream);
}

/// One kernel plans for all.
inline assay_status find_paged_attention_v2_plan(const PagedV2PlanCall &,
                                                 Launch<PagedV2PlanCall> &launch) {
  launch = &launch_paged_attention_v2_plan;
  return ASSAY_OK;
}

} // namespace assay::ASSAY_TARGET
