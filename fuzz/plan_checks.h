// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <vector>

#include "fuzz/target.h"
#include "kernels/plan/host_plan.h"

namespace assay::fuzz {

struct PlanCase {
  SplitPlanShape shape;
  std::vector<int32_t> lens; // [batch]
};

PlanCase decode_plan_case(Input input);

/// Empty when the plan is sound; the list of what that means is in fuzz_plan.cpp.
std::string plan_violation(const PlanCase &c, const SplitPlan &plan);

std::string check_plan(Input input);

} // namespace assay::fuzz
