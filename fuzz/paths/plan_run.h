// SPDX-License-Identifier: Apache-2.0
// The device planners of split plans and prefix trees, on the executor.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "kernels/plan/tree_scratch.h"

namespace assay::fuzz {

struct PlannerRun {
  std::vector<std::byte> plan;
  std::string hazard; // empty: none
};

/// Plans for requests of `lens` tokens, shape.batch of them.
PlannerRun run_planner(const SplitPlanShape &shape, std::span<const int32_t> lens);

/// The tree of `in`, as tree_output() lays it out, and from own_plan_offset on the plan of the keys
/// that it leaves.
PlannerRun run_tree_planner(const TreeInput &in, const SplitPlanShape &own);
inline size_t own_plan_offset(const PrefixTreeShape &shape) {
  return static_cast<size_t>(prefix_tree_layout(shape).bytes + 15) / 16 * 16;
}

} // namespace assay::fuzz
