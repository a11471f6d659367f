// SPDX-License-Identifier: Apache-2.0
// One target's kernels behind plain function pointers, so that the entry points are written once.
#pragma once

#include "kernels/cascade/cascade_call.h"
#include "kernels/decode/plan_call.h"
#include "kernels/decode/v1_call.h"
#include "kernels/decode/v2_call.h"
#include "kernels/host/status.h"
#include "kernels/merge/merge_call.h"
#include "kernels/tree/tree_call.h"

namespace assay {

/// Each finds the instantiation for a checked call and, when `launch`, runs it.
struct LaunchTable {
#define ASSAY_KERNEL_ROW(name, Kernel)                                                             \
  assay_status (*name)(const Kernel::Call &, void *stream, bool launch);
#include "kernels/api/kernels.def"
  assay_status (*plan)(const PlanCall &, void *stream, bool launch);
  assay_status (*tree_plan)(const TreePlanCall &, void *stream, bool launch);
};

namespace n_simt {
const LaunchTable &launch_table();
}
namespace n_cuda {
const LaunchTable &launch_table();
}

/// Checks a call and launches it; without `launch` it answers `supports`.
template <class Kernel, auto LaunchTable::*kLaunch>
assay_status run_call(const LaunchTable &table, const typename Kernel::Params *params,
                      bool launch) {
  typename Kernel::Call call{};
  ASSAY_RETURN_IF_ERROR(Kernel::build(params, call));
  ASSAY_RETURN_IF_ERROR((table.*kLaunch)(call, params->stream, launch && !call.empty));
  return set_ok();
}

} // namespace assay
