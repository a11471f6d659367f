// SPDX-License-Identifier: Apache-2.0
// Positive controls of fuzz_bound: the committed seeds fire when a bound is too small, or a kernel
// worse than its declaration.
#include "fuzz/bound_checks.h"

#include <gtest/gtest.h>

#include "fuzz/tests/seeds.h"
#include "properties/tests/reference_kernels.h"

namespace assay::fuzz {
namespace {

using oracle::test::Mutant;

std::string run(const BoundSabotage &sabotage, reference::Bug bug = reference::Bug::kNone) {
  reference::WithBug with(bug);
  return first_violation("fuzz_bound", [&](Input input) {
    return check_bound_with(reference::plugin(), input, false, sabotage);
  });
}

TEST(BoundControl, honest_bounds_hold) { EXPECT_EQ(run({}), ""); }
TEST(BoundControl, half_the_budget) { EXPECT_NE(run({.budget = 0.5}), ""); }
TEST(BoundControl, nine_tenths_of_the_budget) { EXPECT_NE(run({.budget = 0.9}), ""); }
TEST(BoundControl, output_truncated) { EXPECT_NE(run({.mutant = Mutant::kOutputTruncated}), ""); }
TEST(BoundControl, scale_in_bf16) { EXPECT_NE(run({.mutant = Mutant::kScaleInBf16}), ""); }
TEST(BoundControl, accumulator_in_bf16) {
  EXPECT_NE(run({.mutant = Mutant::kAccumulatorInBf16}), "");
}
TEST(BoundControl, exp2_coarse) { EXPECT_NE(run({.mutant = Mutant::kExp2Coarse}), ""); }
TEST(BoundControl, kernel_that_drops_a_key) {
  EXPECT_NE(run({}, reference::Bug::kDropsLastKey), "");
}
TEST(BoundControl, kernel_whose_row_sum_misses_a_key) {
  EXPECT_NE(run({}, reference::Bug::kRowSumDropsKey), "");
}

} // namespace
} // namespace assay::fuzz
