// SPDX-License-Identifier: Apache-2.0
// The decode kernels of ASSAY_TARGET: finds the instantiation that a call needs, and launches it.
#pragma once

#include "kernels/arch/convert.cuh"
#include "kernels/blocks/plan_launch.cuh"
#include "kernels/decode/decode_launch.h"
#include "kernels/decode/plan_call.h"

namespace assay::ASSAY_TARGET {

struct DecodeInstantiation {
  assay_dtype dtype, kv_dtype;
  int head_dim;
  assay_status (*v1)(const PagedV1Call &, void *stream);
  assay_status (*v2)(const SplitKvCall &, void *stream);
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

/// Null when there is none.
inline const DecodeInstantiation *find_decode(const PagedShape &shape) {
  for (const DecodeInstantiation &i : kDecode)
    if (i.dtype == shape.dtype && i.kv_dtype == shape.kv_dtype && i.head_dim == shape.head_dim)
      return &i;
  return nullptr;
}

inline assay_status launch_paged_attention_v1(const PagedV1Call &call, void *stream, bool launch) {
  const PagedShape &s = call.paged.shape;
  const DecodeInstantiation *found = find_decode(s);
  if (found == nullptr) return no_instantiation(s.dtype, s.kv_dtype, s.head_dim);
  return launch ? found->v1(call, stream) : ASSAY_OK;
}

inline assay_status launch_paged_attention_v2(const SplitKvCall &call, void *stream, bool launch) {
  const PagedShape &s = call.paged.shape;
  const DecodeInstantiation *found = find_decode(s);
  if (found == nullptr) return no_instantiation(s.dtype, s.kv_dtype, s.head_dim);
  return launch ? found->v2(call, stream) : ASSAY_OK;
}

inline assay_status launch_plan(const PlanCall &call, void *stream, bool launch) {
  return launch ? launch_plan_kernel(call.shape, call.seq_lens, call.plan, stream) : ASSAY_OK;
}

} // namespace assay::ASSAY_TARGET
