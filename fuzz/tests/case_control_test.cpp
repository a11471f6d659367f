// SPDX-License-Identifier: Apache-2.0
// Positive controls of fuzz_paged and fuzz_cascade: plain C++ kernels with one defect each.
#include "fuzz/cases/case_judge.h"

#include <gtest/gtest.h>

#include "fuzz/tests/seeds.h"
#include "properties/tests/reference_kernels.h"

namespace assay::fuzz {
namespace {

using reference::Bug;

std::string run(const char *target, const CaseFormat &format, Bug bug) {
  reference::WithBug with(bug);
  return first_violation(
      target, [&](Input input) { return check_case_with(reference::plugin(), format, input); });
}
std::string run_paged(Bug bug) { return run("fuzz_paged", paged_format(), bug); }
std::string run_cascade(Bug bug) { return run("fuzz_cascade", cascade_format(), bug); }

TEST(CaseControl, right_kernels_pass) {
  EXPECT_EQ(run_paged(Bug::kNone), "");
  EXPECT_EQ(run_cascade(Bug::kNone), "");
}

TEST(CaseControl, wrong_paged_kernels) {
  for (const Bug bug :
       {Bug::kMissingRescale, Bug::kLateMask, Bug::kStrayWrite, Bug::kReadsWorkspace,
        Bug::kRowSumDropsKey, Bug::kMaxFromZero, Bug::kAscendingPages, Bug::kSkipsRepeatedPages,
        Bug::kHeadRemainder, Bug::kFixedKvHead, Bug::kDropsLastKey, Bug::kUnweightedSplits,
        Bug::kNoSoftcap, Bug::kAlibiOffByOne, Bug::kWindowOffByOne, Bug::kNotCausal,
        Bug::kSinkIgnored, Bug::kScaleOfHeadZero})
    EXPECT_NE(run_paged(bug), "") << static_cast<int>(bug);
}

TEST(CaseControl, wrong_cascades) {
  for (const Bug bug : {Bug::kMissingRescale, Bug::kStrayWrite, Bug::kFixedKvHead,
                        Bug::kDropsLastKey, Bug::kPrefixTwice})
    EXPECT_NE(run_cascade(bug), "") << static_cast<int>(bug);
}

} // namespace
} // namespace assay::fuzz
