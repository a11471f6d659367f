// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <span>
#include <string>
#include <vector>

#include "fuzz/byte_reader.h"
#include "kernels/plan/split_plan.h"

namespace assay::fuzz {

struct PlanCase {
  SplitPlanShape shape;
  std::vector<int32_t> lens; // [batch]
};

PlanCase decode_plan_case(ByteReader &in);

/// How the host planner's plan of the case differs from what the device planner writes on the
/// executor: they are the same function, byte for byte. Empty: in nothing.
std::string planner_difference(const PlanCase &c, std::span<const std::byte> host);

/// plan_violation (kernels/plan/tests/plan_audit.h) of the host planner's plan of the case, and
/// planner_difference.
std::string check_split_plan(const PlanCase &c);

/// check_split_plan or check_tree (fuzz/tree_checks.h), as the first byte of the input says.
std::string check_plan(Input input);

} // namespace assay::fuzz
