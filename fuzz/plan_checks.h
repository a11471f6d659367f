// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <vector>

#include "fuzz/target.h"
#include "kernels/plan/split_plan.h"

namespace assay::fuzz {

struct PlanCase {
  SplitPlanShape shape;
  std::vector<int32_t> lens; // [batch]
};

PlanCase decode_plan_case(Input input);

/// plan_violation (kernels/plan/plan_audit.h) of the host planner's plan of the decoded case.
std::string check_plan(Input input);

} // namespace assay::fuzz
