// SPDX-License-Identifier: Apache-2.0
// Forbidden calls: each is asked, none is left behind, and a kernel that takes one is found.
#include <cstring>
#include <set>

#include <gtest/gtest.h>

#include "kernels/abi/kernel_table.h"
#include "kernels/simt/asan.h"
#include "properties/call/bad_calls.h"
#include "properties/call/materialise.h"
#include "properties/case/problem_gen.h"
#include "properties/run/registry.h"
#include "properties/tests/families.h"

namespace assay {
namespace {

const assay_kernel &kernel_of(Family family) {
  for (const assay_kernel &kernel : linked_kernels())
    if (kernel.family == static_cast<assay_family>(family) && kernel.target == ASSAY_TARGET_SIMT)
      return kernel;
  std::abort();
}

assay_status takes_all(const void *) { return ASSAY_OK; }

/// Dereferences what it is given, as a kernel without checks does.
assay_status reads_lengths(const void *params) {
  const auto &p = *static_cast<const assay_paged_params *>(params);
  return p.kv.seq_lens[0] >= 0 ? ASSAY_OK : ASSAY_INVALID_ARGUMENT;
}

TEST(BadCalls, EachIsAskedAndMended) {
  for (const Family family : kFamilies) {
    std::set<std::string> asked;
    for (uint64_t seed = 0; seed < 60; ++seed) {
      Tensors t = materialise(draw_problem(fuzz_limits(), family, seed));
      AbiParams params = make_params(t, host_addresses(t), ASSAY_TARGET_SIMT, nullptr);
      const AbiParams right = make_params(t, host_addresses(t), ASSAY_TARGET_SIMT, nullptr);
      for_each_bad_call(params, {true, true, 0}, [&](const BadCall &call) {
        EXPECT_FALSE(call.argument.empty()) << call.what;
        asked.insert(call.what);
      });
      EXPECT_EQ(std::memcmp(&params.paged, &right.paged, sizeof right.paged), 0);
      EXPECT_EQ(std::memcmp(&params.merge_state, &right.merge_state, sizeof right.merge_state), 0);
      EXPECT_EQ(std::memcmp(&params.merge_states, &right.merge_states, sizeof right.merge_states),
                0);
      ASSERT_EQ(params.levels.size(), right.levels.size());
      for (size_t l = 0; l < params.levels.size(); ++l)
        EXPECT_EQ(std::memcmp(&params.levels[l], &right.levels[l], sizeof params.levels[l]), 0);
    }
    EXPECT_GE(asked.size(), 50u) << name_of(family);
  }
}

TEST(BadCalls, AKernelThatTakesThemIsFound) {
  for (const Family family : kFamilies) {
    assay_kernel kernel = kernel_of(family);
    const Problem p = draw_problem(fuzz_limits(), family, 8);
    EXPECT_TRUE(find_property("bad_calls_refused")->check(p, *make_simt_sut(kernel)).passed());
    kernel.supports = takes_all;
    const CheckResult r = find_property("bad_calls_refused")->check(p, *make_simt_sut(kernel));
    EXPECT_TRUE(r.failed()) << name_of(family);
    EXPECT_EQ(
        r.message.rfind("does not refuse a call that assay.h forbids: struct_size is 0, and", 0),
        0u)
        << r.message;
  }
}

TEST(BadCalls, ARunIsNotToTakeWhatIsRefusedWhenAsked) {
  assay_kernel kernel = kernel_of(Family::kMergeState);
  kernel.run = takes_all;
  const Tensors t = materialise(draw_problem(fuzz_limits(), Family::kMergeState, 7));
  const std::vector<WrongAnswer> accepted = make_simt_sut(kernel)->accepted_bad_calls(t);
  ASSERT_FALSE(accepted.empty());
  EXPECT_EQ(accepted[0].text, "struct_size is 0, which is refused when asked and then run");
}

/// Says of every shape that it has a size.
assay_status any_workspace(const void *params, uint64_t *bytes) {
  assay_paged_attention_v2_workspace_size(static_cast<const assay_paged_params *>(params), bytes);
  return ASSAY_OK;
}
assay_status any_plan(const void *, uint64_t *) { return ASSAY_OK; }

TEST(BadCalls, ASizeOrAPlanOfARefusedShapeIsOneOfThem) {
  const Tensors t = materialise(draw_problem(fuzz_limits(), Family::kPaged, 8));
  const auto of = [&](const assay_kernel &kernel) {
    std::set<std::string> texts;
    for (const WrongAnswer &wrong : make_simt_sut(kernel)->accepted_bad_calls(t))
      texts.insert(wrong.text);
    return texts;
  };
  const assay_kernel right = own_kernel("paged_attention_v2");
  EXPECT_TRUE(of(right).empty());
  for (const std::string what : {"struct_size is 0", "head_dim is 192", "kv.page_size is 0",
                                 "num_splits is -1", "kv.rows is one more than batch"}) {
    const std::string refused = what + ", which is refused when asked and ";
    assay_kernel kernel = right;
    kernel.workspace_size = any_workspace;
    EXPECT_EQ(of(kernel).count(refused + "has a workspace"), 1u) << what;
    kernel = right;
    kernel.plan_size = any_plan;
    EXPECT_EQ(of(kernel).count(refused + "has a plan"), 1u) << what;
    kernel = right;
    kernel.plan = takes_all;
    EXPECT_EQ(of(kernel).count(refused + "is planned"), 1u) << what;
  }
  // Sizes do not depend on pointers or strides.
  assay_kernel kernel = right;
  kernel.workspace_size = any_workspace;
  EXPECT_EQ(of(kernel).count("q is null, which is refused when asked and has a workspace"), 0u);
}

TEST(BadCalls, NoParamsIsOneOfThem) {
  assay_kernel kernel = kernel_of(Family::kMergeState);
  kernel.supports = [](const void *params) -> assay_status {
    return params == nullptr
               ? ASSAY_OK
               : assay_merge_state_supports(static_cast<const assay_merge_state_params *>(params));
  };
  const Tensors t = materialise(draw_problem(fuzz_limits(), Family::kMergeState, 7));
  const std::vector<WrongAnswer> accepted = make_simt_sut(kernel)->accepted_bad_calls(t);
  ASSERT_EQ(accepted.size(), 1u);
  EXPECT_EQ(accepted[0].text, "params null");
}

TEST(BadCalls, ACrashIsOneOfThem) {
  if (processes_need_one_thread() && ASSAY_ASAN) GTEST_SKIP() << "ASan reports the crash itself";
  assay_kernel kernel = kernel_of(Family::kPaged);
  kernel.supports = reads_lengths;
  const auto sut = make_process_sut(kernel);
  Problem p = draw_problem(fuzz_limits(), Family::kPaged, 7);
  const Tensors t = materialise(p);
  for (int twice = 0; twice < 2; ++twice) {
    const std::vector<WrongAnswer> accepted = sut->accepted_bad_calls(t);
    ASSERT_EQ(accepted.size(), 1u);
    EXPECT_NE(accepted[0].text.find("signal"), std::string::npos) << accepted[0].text;
  }
}

} // namespace
} // namespace assay
