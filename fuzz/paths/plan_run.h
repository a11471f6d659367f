// SPDX-License-Identifier: Apache-2.0
// The device planner of split plans, on the executor.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "kernels/plan/split_plan.h"

namespace assay::fuzz {

struct PlannerRun {
  std::vector<std::byte> plan;
  std::string hazard; // empty: none
};

/// Plans for requests of `lens` tokens, shape.batch of them.
PlannerRun run_planner(const SplitPlanShape &shape, std::span<const int32_t> lens);

} // namespace assay::fuzz
