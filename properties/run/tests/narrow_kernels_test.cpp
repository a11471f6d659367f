// SPDX-License-Identifier: Apache-2.0
// Right kernels that take little pass as they are, and fail as soon as they hide what they do.
#include "kernels/abi/kernel_table.h"
#include "properties/tests/narrow_kernels.h"

#include <algorithm>
#include <functional>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "properties/run/probe.h"
#include "properties/run/runner.h"
#include "properties/tests/cli_fixture.h"

namespace assay {
namespace {

const assay_kernel &kernel(const char *name) { return *find_kernel(narrow::plugin(), name); }

class Narrow : public testing::TestWithParam<int> {};

/// within_budget and every fifth of the others, so that ten kernels meet each.
std::vector<const Property *> properties_for(int number) {
  std::vector<const Property *> some = {find_property("within_budget")};
  for (size_t i = static_cast<size_t>(number) % 5; i < properties().size(); i += 5)
    if (&properties()[i] != some[0]) some.push_back(&properties()[i]);
  return some;
}

TEST_P(Narrow, KernelPasses) {
  const assay_kernel &narrow = narrow::plugin().kernels[GetParam()];
  RunnerOptions options;
  options.seed = static_cast<uint64_t>(1 + GetParam());
  options.cases = 2;
  options.threads = 1;
  options.envelopes[&narrow] = probe_envelope(narrow, false);
  const RunSummary summary =
      run_properties({&narrow}, properties_for(GetParam()), options, nullptr);
  for (const PropertyRun &run : summary.runs) {
    EXPECT_EQ(run.findings, 0) << run.property->name;
    EXPECT_EQ(run.missing, std::vector<std::string>()) << run.property->name;
    EXPECT_EQ(run.harness_error, "") << run.property->name;
  }
  EXPECT_GT(summary.outputs(), 1000u);
}
INSTANTIATE_TEST_SUITE_P(, Narrow, testing::Range(0, narrow::plugin().num_kernels),
                         [](const auto &info) {
                           return std::string(narrow::plugin().kernels[info.param].name);
                         });

// `assay check --plugin`, whole, but for the number of cases.
TEST_F(Cli, ANarrowKernelPassesInAPlugin) {
  const Ran r =
      assay_program({"check", "--plugin", ASSAY_NARROW_PLUGIN, "--kernel",
                     narrow::plugin().kernels[0].name, "--cases", "2", "--json", path("out.json")});
  EXPECT_EQ(r.code, kExitPass) << r.out << r.err;
  const auto report = json("out.json")["kernels"][0];
  EXPECT_GT(report["outputs"], 1000);
  EXPECT_GT(report["median_budget"], 0.0);
}

/// Findings of within_budget at a quarter of its default number of cases, in what the kernel takes.
int findings(const assay_kernel &kernel) {
  RunnerOptions options;
  options.cases = 10;
  options.threads = 1;
  options.shrink.checks = 1;
  options.envelopes[&kernel] = probe_envelope(kernel, false);
  const auto summary =
      run_properties({&kernel}, {find_property("within_budget")}, options, nullptr);
  return summary.findings();
}

struct Hidden {
  const char *kernel;
  void (*hide)(assay_arithmetic &);
};
class HiddenArithmetic : public testing::TestWithParam<Hidden> {};

TEST_P(HiddenArithmetic, IsCaught) {
  assay_kernel hiding = kernel(GetParam().kernel);
  EXPECT_EQ(findings(hiding), 0);
  GetParam().hide(hiding.arithmetic);
  EXPECT_GT(findings(hiding), 0);
}
const Hidden kHidden[] = {
    {"p_e4m3", [](assay_arithmetic &a) { a.p_format = ASSAY_FORMAT_BF16; }},
    {"p_e5m2_natural", [](assay_arithmetic &a) { a.p_format = ASSAY_FORMAT_FP16; }},
    {"sums_fp16", [](assay_arithmetic &a) { a.sum_format = ASSAY_FORMAT_FP32; }},
    {"sums_bf16", [](assay_arithmetic &a) { a.sum_format = ASSAY_FORMAT_FP32; }},
    {"q_e4m3", [](assay_arithmetic &a) { a.q_abs_error = 0.0; }},
    {"fp8_everywhere", [](assay_arithmetic &a) { a.q_abs_error = 0x1p-39; }}};
INSTANTIATE_TEST_SUITE_P(, HiddenArithmetic, testing::ValuesIn(kHidden), [](const auto &info) {
  return std::string(info.param.kernel) + "_" + std::to_string(info.index);
});

PropertyRun run_of(const assay_kernel &kernel, const char *property, int cases) {
  RunnerOptions options;
  options.cases = cases;
  options.seed = 2;
  options.threads = 1;
  options.shrink.checks = 1;
  options.envelopes[&kernel] = probe_envelope(kernel, false);
  return run_properties({&kernel}, {find_property(property)}, options, nullptr).runs.at(0);
}

// num_splits binds a kernel that declares ASSAY_BATCH_FIXED. This one splits as it likes.
TEST(OwnSplits, AreNoFinding) {
  assay_kernel own = kernel("own_splits_no_empty_rows");
  EXPECT_EQ(run_of(own, "dyadic_exact", 40).findings, 0);
  own.batch_invariance = ASSAY_BATCH_FIXED;
  EXPECT_GT(run_of(own, "dyadic_exact", 40).findings, 0);
}

// A case makes many calls here, and passes although those with empty rows were refused.
TEST(NoEmptyRows, AreOutsideAndNotMissing) {
  const PropertyRun run = run_of(kernel("own_splits_no_empty_rows"), "call_sequence", 10);
  EXPECT_EQ(run.missing, std::vector<std::string>());
  EXPECT_NE(std::find(run.outside.begin(), run.outside.end(), "empty_row"), run.outside.end());
}

// Better than declared is right as well.
TEST(DeclaredArithmetic, MayBeWorseThanTheKernel) {
  for (const auto &worse : std::initializer_list<void (*)(assay_arithmetic &)>{
           [](assay_arithmetic &a) { a.p_format = ASSAY_FORMAT_E4M3; },
           [](assay_arithmetic &a) { a.sum_format = ASSAY_FORMAT_FP16; },
           [](assay_arithmetic &a) { a.exponential = ASSAY_EXP_NATURAL; },
           [](assay_arithmetic &a) { a.q_abs_error = 0x1p-8; }}) {
    assay_kernel modest = kernel("newest_first");
    worse(modest.arithmetic);
    EXPECT_EQ(findings(modest), 0);
  }
}

} // namespace
} // namespace assay
