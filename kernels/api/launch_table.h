// SPDX-License-Identifier: Apache-2.0
// One target's kernels behind plain function pointers, so that the entry points are written once.
#pragma once

#include "kernels/cascade/cascade_call.h"
#include "kernels/decode/plan_call.h"
#include "kernels/decode/v1_call.h"
#include "kernels/decode/v2_call.h"
#include "kernels/exchange/exchange_call.h"
#include "kernels/host/checks.h"
#include "kernels/host/find.h"
#include "kernels/merge/merge_call.h"
#include "kernels/ranks/ranks_call.h"
#include "kernels/tree/tree_call.h"

namespace assay {

/// What finds the launch of a kernel's calls, and of its planner's.
struct LaunchTable {
#define ASSAY_KERNEL_ROW(name, Kernel) Find<Kernel::Call> name;
#include "kernels/api/kernels.def"
#define ASSAY_KERNEL_ROW(name, Kernel)
#define ASSAY_PLANNED_KERNEL(name, Kernel) Find<Kernel::Planner::Call> name##_plan;
#include "kernels/api/kernels.def"
};

namespace n_simt {
const LaunchTable &launch_table();
}
namespace n_cuda {
const LaunchTable &launch_table();
}

/// Checks a call and finds its launch, in one of the table's rows.
template <class Kernel>
assay_status prepare_call(Find<typename Kernel::Call> find, const typename Kernel::Params *params,
                          typename Kernel::Call &call, Launch<typename Kernel::Call> &launch) {
  ASSAY_RETURN_IF_ERROR(Kernel::build(params, call));
  ASSAY_RETURN_IF_ERROR(check_device_code(params->target));
  return find(call, launch);
}

/// Whether a call would be launched.
template <class Kernel>
assay_status supports_call(Find<typename Kernel::Call> find,
                           const typename Kernel::Params *params) {
  typename Kernel::Call call{};
  Launch<typename Kernel::Call> launch = nullptr;
  ASSAY_RETURN_IF_ERROR(prepare_call<Kernel>(find, params, call, launch));
  return set_ok();
}

/// Launches it.
template <class Kernel>
assay_status run_call(Find<typename Kernel::Call> find, const typename Kernel::Params *params) {
  typename Kernel::Call call{};
  Launch<typename Kernel::Call> launch = nullptr;
  ASSAY_RETURN_IF_ERROR(prepare_call<Kernel>(find, params, call, launch));
  if (!call.empty) ASSAY_RETURN_IF_ERROR(launch(call, params->stream));
  return set_ok();
}

} // namespace assay
