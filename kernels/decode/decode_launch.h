// SPDX-License-Identifier: Apache-2.0
// Launches of the decode kernels for one element type and head_dim; one translation unit each
// (instantiations.def). Only declared here, so that the table does not instantiate kernels again.
#pragma once

#include "kernels/arch/target.cuh"
#include "kernels/decode/v1_call.h"
#include "kernels/decode/v2_call.h"

namespace assay::ASSAY_TARGET {

/// Q and O are Query, the cache Kv.
template <class Query, class Kv, int kHeadDim>
struct DecodeLaunch {
  static assay_status v1(const PagedV1Call &call, void *stream);
  static assay_status v2(const SplitKvCall &call, void *stream);
};

} // namespace assay::ASSAY_TARGET
