// SPDX-License-Identifier: Apache-2.0
#include "properties/run/requirements.h"

#include <gtest/gtest.h>

#include "properties/run/runner.h"
#include "properties/tests/reference_kernels.h"

namespace assay {
namespace {

const assay_kernel &kernel_v1() { return reference::kernel("reference_v1"); }

RunnerOptions short_run() {
  RunnerOptions options;
  options.cases = 2;
  options.threads = 1;
  return options;
}

TEST(Requirements, EveryImportantClassGetsTwoCasesEvenInShortRuns) {
  auto summary =
      run_properties({&kernel_v1()}, {find_property("run_to_run")}, short_run(), nullptr);
  const PropertyRun &run = summary.runs[0];
  for (const std::string &name : required_classes(*run.property, *run.kernel))
    EXPECT_GE(run.classes.at(name), 2) << name;
}

// What a property takes out of its cases is not asked of them, or no run could be whole.
TEST(Requirements, NoPropertyAsksForAClassThatItTakesAway) {
  std::vector<const Property *> all;
  for (const Property &property : properties())
    if (applies(property, kernel_v1()) && property.without != 0) all.push_back(&property);
  ASSERT_GT(all.size(), 5u);
  for (const PropertyRun &run : run_properties({&kernel_v1()}, all, short_run(), nullptr).runs)
    EXPECT_EQ(run.missing, std::vector<std::string>{}) << run.property->name;
}

// Its calls are never made of such a kernel, and refusals would be all that it says.
TEST(Requirements, ShardsAreAskedOfKernelsThatDeclareThem) {
  assay_kernel kernel = kernel_v1();
  const Property &property = *find_property("shards_equal_whole");
  for (const assay_capabilities shards : {0u, assay_capabilities{ASSAY_SHARDS}}) {
    kernel.capabilities = shards;
    EXPECT_EQ(applies(property, kernel), shards != 0);
  }
}

} // namespace
} // namespace assay
