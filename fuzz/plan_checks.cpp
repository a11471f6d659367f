// SPDX-License-Identifier: Apache-2.0
#include "fuzz/plan_checks.h"

#include <algorithm>

#include "fuzz/paths/plan_run.h"
#include "fuzz/tree_checks.h"
#include "kernels/plan/host_plan.h"
#include "kernels/plan/tests/plan_audit.h"

namespace assay::fuzz {
namespace {

/// Lengths at several scales. The largest keeps the line of a batch inside the int32 line_indptr.
int32_t read_length(ByteReader &in) {
  switch (in.byte() % 4) {
  case 0:
    return 0;
  case 1:
    return in.integer(0, 255);
  case 2:
    return in.integer(0, 65535);
  default:
    return in.integer(0, 1 << 24);
  }
}

} // namespace

PlanCase decode_plan_case(ByteReader &in) {
  PlanCase c;
  c.shape.batch = in.integer(1, 24);
  c.shape.head_tiles = in.integer(1, 8);
  c.shape.splits = in.integer(0, 1) == 0 ? 0 : in.integer(1, 100);
  c.shape.workers = c.shape.splits > 0 ? c.shape.batch * c.shape.splits : in.integer(1, 528);
  c.shape.tile = in.integer(1, 128);
  for (int i = 0; i < c.shape.batch; ++i)
    c.lens.push_back(read_length(in));
  return c;
}

std::string planner_difference(const PlanCase &c, std::span<const std::byte> host) {
  const PlannerRun device = run_planner(c.shape, c.lens);
  if (!device.hazard.empty()) return "the device planner: " + device.hazard;
  const auto [at, other] = std::ranges::mismatch(host, device.plan);
  if (at == host.end() && other == device.plan.end()) return "";
  return "the plan of the device is not that of the host from byte " +
         std::to_string(at - host.begin()) + " of " + std::to_string(host.size()) + " on";
}

std::string check_split_plan(const PlanCase &c) {
  const HostPlan plan(c.shape, c.lens.data());
  const std::string unsound = plan_violation(c.lens, plan.view());
  if (!unsound.empty()) return unsound;
  const auto *bytes = static_cast<const std::byte *>(plan.data());
  return planner_difference(c, {bytes, plan.bytes()});
}

std::string check_plan(Input input) {
  ByteReader in(input);
  return in.byte() % 2 == 0 ? check_split_plan(decode_plan_case(in))
                            : check_tree(decode_tree_case(in));
}

} // namespace assay::fuzz
