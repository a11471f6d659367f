// SPDX-License-Identifier: Apache-2.0
// Launch of cascade_attention for one element type and head_dim; one translation unit each
// (instantiations.def). Only declared here, so that the table does not instantiate kernels again.
#pragma once

#include "kernels/arch/target.cuh"
#include "kernels/cascade/cascade_call.h"

namespace assay::ASSAY_TARGET {

template <class E, int kHeadDim>
struct CascadeLaunch {
  static assay_status run(const CascadeCall &call, void *stream);
};

} // namespace assay::ASSAY_TARGET
