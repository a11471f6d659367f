// SPDX-License-Identifier: Apache-2.0
// Calls at the limits of assay.h: each is asked, none is left behind, and a kernel that has other
// limits is found.
#include <cstring>
#include <limits>

#include <gtest/gtest.h>

#include "kernels/abi/kernel_table.h"
#include "properties/call/limit_calls.h"
#include "properties/call/materialise.h"
#include "properties/case/problem_gen.h"
#include "properties/run/registry.h"
#include "properties/tests/families.h"

namespace assay {
namespace {

const char *name_of_kernel(Family family) {
  switch (family) {
  case Family::kPaged:
    return "paged_attention_v2";
  case Family::kCascade:
    return "cascade_attention";
  case Family::kMergeState:
    return "merge_state";
  case Family::kMergeStates:
    return "merge_states";
  }
  return "";
}

TEST(LimitCalls, EachIsAskedAndMended) {
  for (const Family family : kFamilies)
    for (uint64_t seed = 0; seed < 40; ++seed) {
      Tensors t = materialise(draw_problem(check_limits(), family, seed));
      AbiParams params = make_params(t, host_addresses(t), ASSAY_TARGET_SIMT, nullptr);
      const AbiParams right = make_params(t, host_addresses(t), ASSAY_TARGET_SIMT, nullptr);
      int allowed = 0, beyond = 0;
      for_each_limit(params, {true, true, 0, true}, [&](const LimitedCall &call) {
        EXPECT_NE(call.what, "");
        EXPECT_NE(call.limit, "");
        ++(call.allowed ? allowed : beyond);
      });
      EXPECT_GE(allowed, 8) << name_of(family);
      EXPECT_GE(beyond, 3) << name_of(family);
      EXPECT_EQ(std::memcmp(&params.paged, &right.paged, sizeof right.paged), 0);
      EXPECT_EQ(std::memcmp(&params.merge_state, &right.merge_state, sizeof right.merge_state), 0);
      EXPECT_EQ(std::memcmp(&params.merge_states, &right.merge_states, sizeof right.merge_states),
                0);
      EXPECT_EQ(params.cascade.levels, params.levels.data());
      ASSERT_EQ(params.levels.size(), right.levels.size());
      for (size_t l = 0; l < params.levels.size(); ++l)
        EXPECT_EQ(std::memcmp(&params.levels[l], &right.levels[l], sizeof params.levels[l]), 0);
    }
}

/// The verdict of limits_kept on a kernel of ours that answers otherwise.
CheckResult verdict(Family family, assay_status (*supports)(const void *), uint64_t seed = 8) {
  assay_kernel kernel = own_kernel(name_of_kernel(family));
  if (supports != nullptr) kernel.supports = supports;
  const Problem p = draw_problem(fuzz_limits(), family, seed);
  return find_property("limits_kept")->check(p, *make_simt_sut(kernel));
}

void expect_found(Family family, assay_status (*supports)(const void *), const char *why) {
  const CheckResult r = verdict(family, supports);
  EXPECT_TRUE(r.failed()) << name_of(family);
  EXPECT_NE(r.message.find(why), std::string::npos) << r.message;
}

TEST(LimitCalls, OurKernelsKeepThem) {
  for (const char *name : {"paged_attention_v1", "paged_attention_v2", "tree_attention",
                           "cascade_attention", "merge_state", "merge_states"})
    for (uint64_t seed = 0; seed < 30; ++seed) {
      const assay_kernel &kernel = own_kernel(name);
      const Problem p = draw_problem(check_limits(), static_cast<Family>(kernel.family), seed);
      const CheckResult r = find_property("limits_kept")->check(p, *make_simt_sut(kernel));
      EXPECT_FALSE(r.failed()) << name << " " << seed << ": " << r.message;
    }
}

TEST(LimitCalls, AKernelWithoutLimitsIsFound) {
  for (const Family family : kFamilies)
    expect_found(
        family, [](const void *) -> assay_status { return ASSAY_OK; },
        "is not refused, and is beyond a limit (status 0)");
}

/// Refuses the largest calls with a status, as a limit that is off by one does.
template <class Params, auto kSupports, assay_status kStatus>
assay_status refuses_the_largest(const void *params) {
  const auto &p = *static_cast<const Params *>(params);
  const assay_status status = kSupports(&p);
  if constexpr (requires { p.num_rows; })
    return status == ASSAY_OK && p.num_rows == std::numeric_limits<int32_t>::max() ? kStatus
                                                                                   : status;
  else
    return status == ASSAY_OK && p.batch == 1 << 24 ? kStatus : status;
}

TEST(LimitCalls, ALimitThatIsOneLessIsFound) {
  constexpr assay_status kFull = ASSAY_CAPACITY_EXCEEDED;
  const char *why = "is refused, and is allowed (status 4";
  expect_found(
      Family::kPaged,
      [](const void *params) {
        // 2^31 - 2 blocks are the most that a call has.
        const auto &p = *static_cast<const assay_paged_params *>(params);
        const assay_status status = assay_paged_attention_v2_supports(&p);
        return status == ASSAY_OK && p.batch == 6'487'866 ? kFull : status;
      },
      why);
  expect_found(Family::kCascade,
               &refuses_the_largest<assay_cascade_params, assay_cascade_attention_supports, kFull>,
               why);
  expect_found(Family::kMergeState,
               &refuses_the_largest<assay_merge_state_params, assay_merge_state_supports, kFull>,
               why);
  expect_found(Family::kMergeStates,
               &refuses_the_largest<assay_merge_states_params, assay_merge_states_supports, kFull>,
               why);
}

TEST(LimitCalls, ANarrowKernelHasAStatusOfItsOwn) {
  constexpr auto kNarrow =
      &refuses_the_largest<assay_cascade_params, assay_cascade_attention_supports,
                           ASSAY_UNSUPPORTED>;
  EXPECT_TRUE(verdict(Family::kCascade, kNarrow).passed());
  constexpr auto kUntyped =
      &refuses_the_largest<assay_cascade_params, assay_cascade_attention_supports,
                           ASSAY_LAUNCH_FAILED>;
  expect_found(Family::kCascade, kUntyped, "gets a status that says neither (status 5");
}

TEST(LimitCalls, HeadsMayBeFarApart) {
  expect_found(
      Family::kPaged,
      [](const void *params) {
        const auto &p = *static_cast<const assay_paged_params *>(params);
        const assay_status status = assay_paged_attention_v2_supports(&p);
        return status == ASSAY_OK && p.kv.k_stride_head >= int64_t{1} << 31 ? ASSAY_INVALID_ARGUMENT
                                                                            : status;
      },
      "strides of heads of 2^40 is refused, and is allowed");
}

/// The verdict of limits_kept on a v2 with another answer about its plan.
std::string message_of_planner(assay_status (*plan_size)(const void *, uint64_t *)) {
  assay_kernel kernel = own_kernel("paged_attention_v2");
  kernel.plan_size = plan_size;
  const Problem p = draw_problem(fuzz_limits(), Family::kPaged, 8);
  return find_property("limits_kept")->check(p, *make_simt_sut(kernel)).message;
}

TEST(LimitCalls, ThePlanIsAskedFor) {
  const std::string without = message_of_planner(
      [](const void *, uint64_t *bytes) -> assay_status { return *bytes = 16, ASSAY_OK; });
  EXPECT_NE(without.find("asked for its plan, is not refused"), std::string::npos) << without;
  const std::string narrow = message_of_planner(
      [](const void *, uint64_t *) -> assay_status { return ASSAY_CAPACITY_EXCEEDED; });
  EXPECT_NE(narrow.find("of 1024 pages of 1 tokens, asked for its plan, is refused"),
            std::string::npos)
      << narrow;
}

TEST(LimitCalls, APlannerIsNotToTakeWhatIsRefusedWhenAsked) {
  for (const char *name : {"paged_attention_v2", "tree_attention"}) {
    Tensors t = materialise(draw_problem(fuzz_limits(), Family::kPaged, 8));
    AbiParams params = make_params(t, host_addresses(t), ASSAY_TARGET_SIMT, nullptr);
    assay_paged_params &p = params.paged;
    p.batch = p.kv.rows = 1 << 24;
    p.kv.max_pages = 1 << 30;
    p.kv.page_table_stride = p.kv.max_pages;
    p.kv.page_size = 1;
    p.num_splits = 0;
    EXPECT_EQ(own_kernel(name).plan(params.get()), ASSAY_CAPACITY_EXCEEDED)
        << name << ": " << assay_last_error();
    p.kv.page_size = 4;
    EXPECT_EQ(own_kernel(name).plan(params.get()), ASSAY_INVALID_ARGUMENT) << name;
  }
}

TEST(LimitCalls, TheWorkspaceIsAskedFor) {
  assay_kernel kernel = own_kernel("paged_attention_v2");
  kernel.workspace_size = [](const void *params, uint64_t *bytes) {
    const auto &p = *static_cast<const assay_paged_params *>(params);
    const assay_status status = assay_paged_attention_v2_workspace_size(&p, bytes);
    return status == ASSAY_OK && p.batch > 1 << 20 ? ASSAY_CAPACITY_EXCEEDED : status;
  };
  const Problem p = draw_problem(fuzz_limits(), Family::kPaged, 8);
  const CheckResult r = find_property("limits_kept")->check(p, *make_simt_sut(kernel));
  EXPECT_NE(r.message.find("asked for its workspace, is refused"), std::string::npos) << r.message;
}

} // namespace
} // namespace assay
