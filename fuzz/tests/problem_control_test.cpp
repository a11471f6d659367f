// SPDX-License-Identifier: Apache-2.0
// Positive controls of fuzz_problem: plain C++ kernels, right and with one defect each.
#include "fuzz/problem_checks.h"

#include <gtest/gtest.h>

#include "fuzz/tests/seeds.h"
#include "properties/tests/reference_kernels.h"

namespace assay::fuzz {
namespace {

using reference::Bug;

std::string run(Bug bug) {
  reference::WithBug with(bug);
  return first_violation(
      "fuzz_problem", [](Input input) { return check_problem_with(reference::plugin(), input); });
}

TEST(ProblemControl, right_kernels_pass) { EXPECT_EQ(run(Bug::kNone), ""); }
TEST(ProblemControl, missing_rescale) { EXPECT_NE(run(Bug::kMissingRescale), ""); }
TEST(ProblemControl, late_mask) { EXPECT_NE(run(Bug::kLateMask), ""); }
TEST(ProblemControl, stray_write) { EXPECT_NE(run(Bug::kStrayWrite), ""); }
TEST(ProblemControl, reads_workspace) { EXPECT_NE(run(Bug::kReadsWorkspace), ""); }
TEST(ProblemControl, fixed_kv_head) { EXPECT_NE(run(Bug::kFixedKvHead), ""); }
TEST(ProblemControl, drops_last_key) { EXPECT_NE(run(Bug::kDropsLastKey), ""); }
TEST(ProblemControl, unweighted_splits) { EXPECT_NE(run(Bug::kUnweightedSplits), ""); }
TEST(ProblemControl, prefix_twice) { EXPECT_NE(run(Bug::kPrefixTwice), ""); }
TEST(ProblemControl, no_inf_guard) { EXPECT_NE(run(Bug::kNoInfGuard), ""); }
TEST(ProblemControl, mean_lse) { EXPECT_NE(run(Bug::kMeanLse), ""); }

} // namespace
} // namespace assay::fuzz
