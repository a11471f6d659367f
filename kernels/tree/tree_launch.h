// SPDX-License-Identifier: Apache-2.0
// The launches of tree_attention for the element types of Q and of the cache and one head_dim; one
// translation unit each (instantiations.def). Only declared here, so that the table does not
// instantiate kernels again.
#pragma once

#include "kernels/arch/target.cuh"
#include "kernels/tree/tree_call.h"

namespace assay::ASSAY_TARGET {

template <class Query, class Kv, int kHeadDim>
struct TreeLaunch {
  /// The kernels of a call that has a plan and a tree.
  static assay_status run(const TreeCall &call, void *stream);
};

} // namespace assay::ASSAY_TARGET
