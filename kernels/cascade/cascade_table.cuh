// SPDX-License-Identifier: Apache-2.0
// The cascade kernels of ASSAY_TARGET: finds the instantiation that a call needs.
#pragma once

#include "kernels/arch/convert.cuh"
#include "kernels/cascade/cascade_launch.h"
#include "kernels/host/find.h"

namespace assay::ASSAY_TARGET {

struct CascadeInstantiation {
  assay_dtype dtype;
  int head_dim;
  Launch<CascadeCall> run;
};

inline constexpr CascadeInstantiation kCascade[] = {
#define ASSAY_INSTANTIATE(element, dtype, head_dim)                                                \
  {dtype, head_dim, &CascadeLaunch<arch::element, head_dim>::run},
#if ASSAY_IS_CUDA
#define ASSAY_INSTANTIATE_SIMT(...)
#else
#define ASSAY_INSTANTIATE_SIMT ASSAY_INSTANTIATE
#endif
#include "kernels/cascade/instantiations.def"
#undef ASSAY_INSTANTIATE
#undef ASSAY_INSTANTIATE_SIMT
};

inline assay_status find_cascade_attention(const CascadeCall &call, Launch<CascadeCall> &launch) {
  for (const CascadeInstantiation &i : kCascade) {
    if (i.dtype != call.dtype || i.head_dim != call.head_dim) continue;
    launch = i.run;
    return ASSAY_OK;
  }
  return no_instantiation(call.dtype, call.dtype, call.head_dim);
}

} // namespace assay::ASSAY_TARGET
