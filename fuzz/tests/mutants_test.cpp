// SPDX-License-Identifier: Apache-2.0
// Positive controls of the targets over whole kernels: the seeds see mutants of corpus/mutants.
#include <gtest/gtest.h>

#include "corpus/mutants/mutants.h"
#include "fuzz/cases/case_judge.h"
#include "fuzz/cases/schedule_judge.h"
#include "fuzz/tests/mutants_seen.h"

namespace assay::fuzz {
namespace {

std::string first_violation_of(const std::string &target) {
  if (target == "fuzz_schedule") {
    ScheduleJudge judge(*mutants::plugin());
    return first_violation("fuzz_schedule", [&](Input input) { return judge.check(input); });
  }
  const bool paged = target == "fuzz_paged";
  return first_violation(target.c_str(), [&](Input input) {
    return check_case_with(*mutants::plugin(), paged ? paged_format() : cascade_format(), input);
  });
}

class SeenBySeeds : public testing::TestWithParam<Seen> {};

TEST_P(SeenBySeeds, is_seen) {
  const mutants::Activate activate(GetParam().mutant->id);
  EXPECT_NE(first_violation_of(GetParam().target), "");
}
INSTANTIATE_TEST_SUITE_P(
    Mutants, SeenBySeeds,
    testing::ValuesIn(seen_by({"fuzz_paged", "fuzz_cascade", "fuzz_schedule"})), name_of);

TEST(SeenBySeeds, nothing_without_a_mutant) {
  for (const char *target : {"fuzz_paged", "fuzz_cascade", "fuzz_schedule"})
    EXPECT_EQ(first_violation_of(target), "");
}

} // namespace
} // namespace assay::fuzz
