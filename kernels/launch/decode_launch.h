// SPDX-License-Identifier: Apache-2.0
// Launches of the decode kernels for one element type and head_dim; one translation unit each
// (instantiations.def). Only declared here, so that the table does not instantiate kernels again.
#pragma once

#include "kernels/arch/target.cuh"
#include "kernels/launch/calls.h"

namespace assay::ASSAY_TARGET {

/// Q and O are Query, the cache Kv; cascade exists for equal types only.
template <class Query, class Kv, int kHeadDim>
struct DecodeLaunch {
  static assay_status v1(const PagedCall &call, void *stream);
  static assay_status v2(const PagedV2Call &call, void *stream);
  static assay_status cascade(const CascadeCall &call, void *stream);
};

} // namespace assay::ASSAY_TARGET
