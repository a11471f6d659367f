// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "kernels/launch/launch_kernel.cuh"
#include "kernels/plan/plan_kernel.cuh"

namespace assay::ASSAY_TARGET {

/// The planner alone.
inline assay_status launch_plan(const SplitPlanShape &shape, const int32_t *seq_lens, int32_t *plan,
                                void *stream) {
  const PlanParams params{shape, seq_lens, plan, plan + shape.batch + 1};
  return launch_kernel(&plan_kernel<kPlanThreads>, "plan",
                       {1, kPlanThreads, sizeof(PlanSharedStorage)}, params, stream);
}

} // namespace assay::ASSAY_TARGET
