// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "kernels/host/launch_kernel.cuh"
#include "kernels/plan/plan_kernel.cuh"

namespace assay::ASSAY_TARGET {

/// Fills the plan buffer at `plan`. PlanInput tells of `covered`.
inline assay_status launch_plan_kernel(const SplitPlanShape &shape, const int32_t *seq_lens,
                                       void *plan, void *stream, const int32_t *covered = nullptr) {
  return launch_kernel<&plan_kernel<kPlanThreads>, sizeof(PlanSharedStorage)>(
      "plan", {1, kPlanThreads}, plan_params(shape, seq_lens, plan, covered), stream);
}

} // namespace assay::ASSAY_TARGET
