// SPDX-License-Identifier: Apache-2.0
// Positive controls of fuzz_plan: plans corrupted in one way each must be caught by the seeds.
#include "fuzz/plan_checks.h"

#include <gtest/gtest.h>

#include <algorithm>

#include "fuzz/tests/seeds.h"
#include "kernels/plan/host_plan.h"
#include "kernels/plan/tests/plan_audit.h"

namespace assay::fuzz {
namespace {

/// The first violation of `check` in the seeds that are split plans.
template <class Check>
std::string of_split_plans(Check check) {
  return first_violation("fuzz_plan", [&](Input input) {
    ByteReader in(input);
    return in.byte() % 2 == 0 ? check(decode_plan_case(in)) : std::string();
  });
}

/// A sound plan with `corrupt` applied to its worker entries.
template <class Spoil>
std::string run(Spoil corrupt) {
  return of_split_plans([&](const PlanCase &c) {
    const HostPlan host(c.shape, c.lens.data());
    SplitPlan plan = host.view();
    std::vector<WorkerItems> workers(plan.workers, plan.workers + c.shape.workers);
    for (WorkerItems &w : workers)
      corrupt(w);
    plan.workers = workers.data();
    return plan_violation(c.lens, plan);
  });
}

TEST(PlanControl, sound_plans_pass) {
  EXPECT_EQ(first_violation("fuzz_plan", check_plan), "");
  EXPECT_EQ(run([](WorkerItems &) {}), "");
}
TEST(PlanControl, forgotten_head) {
  EXPECT_NE(run([](WorkerItems &w) { w.head.num_splits = 0; }), "");
}
TEST(PlanControl, a_key_lost_between_splits) {
  EXPECT_NE(run([](WorkerItems &w) { w.head.kv_begin += w.head.split > 0; }), "");
}
TEST(PlanControl, a_key_computed_twice) {
  EXPECT_NE(run([](WorkerItems &w) { w.head.kv_begin -= w.head.split > 0; }), "");
}
TEST(PlanControl, keys_past_the_end) {
  EXPECT_NE(run([](WorkerItems &w) { w.head.kv_end += 1; }), "");
}
TEST(PlanControl, one_slot_for_all_splits) {
  EXPECT_NE(run([](WorkerItems &w) { w.head.next_slot = w.head.first_slot; }), "");
}
TEST(PlanControl, slots_past_the_workspace) {
  EXPECT_NE(run([](WorkerItems &w) {
              w.head.next_slot += 1 << 20;
              w.head.first_slot += 1 << 20;
            }),
            "");
}
TEST(PlanControl, first_item_of_another_request) {
  EXPECT_NE(run([](WorkerItems &w) { w.first.request = 0; }), "");
}
/// Everything on the first worker is complete, and slow.
TEST(PlanControl, all_work_on_one_worker) {
  EXPECT_NE(of_split_plans([](const PlanCase &c) -> std::string {
              if (c.shape.splits > 0) return "";
              SplitPlanShape one = c.shape;
              one.workers = 1;
              const HostPlan host(one, c.lens.data());
              std::vector<WorkerItems> workers(c.shape.workers);
              workers[0] = host.view().workers[0];
              SplitPlan plan = host.view();
              plan.shape = c.shape;
              plan.workers = workers.data();
              return plan_violation(c.lens, plan);
            }),
            "");
}

/// With the bytes of the host's plan corrupted, or the plan of another case.
template <class Spoil>
std::string difference(Spoil corrupt) {
  return of_split_plans([&](const PlanCase &c) {
    const HostPlan host(c.shape, c.lens.data());
    const auto *first = static_cast<const std::byte *>(host.data());
    std::vector<std::byte> bytes(first, first + host.bytes());
    corrupt(c, bytes);
    return planner_difference(c, bytes);
  });
}

/// A plan is sound with any line that holds all keys; only the other planner knows that it is
/// another one.
TEST(PlanControl, a_line_that_the_device_does_not_plan) {
  using Bytes = std::vector<std::byte>;
  EXPECT_EQ(difference([](const PlanCase &, Bytes &) {}), "");
  EXPECT_NE(difference([](const PlanCase &c, Bytes &bytes) {
              bytes[static_cast<size_t>(plan_layout(c.shape).order) - 4] ^= std::byte{1};
            }),
            "");
  EXPECT_NE(difference([](const PlanCase &, Bytes &bytes) { bytes.pop_back(); }), "");
  EXPECT_NE(difference([](const PlanCase &c, Bytes &bytes) {
              std::vector<int32_t> lens = c.lens;
              lens.back() += c.shape.tile; // and the other requests move
              const HostPlan other(c.shape, lens.data());
              const auto *first = static_cast<const std::byte *>(other.data());
              bytes.assign(first, first + other.bytes());
            }),
            "");
}

} // namespace
} // namespace assay::fuzz
