// SPDX-License-Identifier: Apache-2.0
// Positive controls of the targets over whole kernels: the seeds see mutants of corpus/mutants.
#include <gtest/gtest.h>

#include "corpus/mutants/mutants.h"
#include "fuzz/cases/case_judge.h"
#include "fuzz/cases/schedule_judge.h"
#include "fuzz/tests/seeds.h"

namespace assay::fuzz {
namespace {

int mutant_id(const std::string &name) {
  for (const mutants::Mutant &mutant : mutants::all())
    if (mutant.name == name) return mutant.id;
  throw std::runtime_error(name + " is no mutant of this build");
}

std::string first_violation_of(const std::string &target) {
  if (target == "schedule") {
    ScheduleJudge judge(*mutants::plugin());
    return first_violation("fuzz_schedule", [&](Input input) { return judge.check(input); });
  }
  const bool paged = target == "paged";
  return first_violation(paged ? "fuzz_paged" : "fuzz_cascade", [&](Input input) {
    return check_case_with(*mutants::plugin(), paged ? paged_format() : cascade_format(), input);
  });
}

using Named = std::pair<const char *, const char *>; // target, mutant

class SeenBySeeds : public testing::TestWithParam<Named> {};

TEST_P(SeenBySeeds, is_seen) {
  const mutants::Activate activate(mutant_id(GetParam().second));
  EXPECT_NE(first_violation_of(GetParam().first), "");
}

INSTANTIATE_TEST_SUITE_P(
    Mutants, SeenBySeeds,
    testing::Values(
        Named{"paged", "page_entry_repeated"}, Named{"paged", "swapped_kv_head"},
        Named{"paged", "last_key_dropped"}, Named{"paged", "causal_mask_lost"},
        Named{"paged", "split_average"}, Named{"paged", "partial_slot_of_row_zero"},
        Named{"paged", "o_not_rescaled"}, Named{"paged", "tree_keys_stay_private"},
        Named{"cascade", "cascade_level_lost"}, Named{"cascade", "cascade_splits_of_first_level"},
        Named{"cascade", "cascade_states_by_level"}, Named{"cascade", "narrow_tail_not_masked"},
        Named{"cascade", "wide_tail_not_masked"}, Named{"schedule", "cascade_no_barrier"},
        Named{"schedule", "no_barrier_before_merge"}, Named{"schedule", "k_wait_one_late"},
        Named{"schedule", "next_item_overwrites_states"},
        Named{"schedule", "v1_teams_share_a_barrier"},
        Named{"schedule", "narrow_values_not_awaited"}, Named{"schedule", "wide_copy_not_awaited"},
        Named{"schedule", "partials_without_barrier"},
        Named{"schedule", "tree_states_not_awaited"}),
    [](const auto &tested) { return std::string(tested.param.first) + "_" + tested.param.second; });

TEST(SeenBySeeds, nothing_without_a_mutant) {
  for (const char *target : {"paged", "cascade", "schedule"})
    EXPECT_EQ(first_violation_of(target), "");
}

} // namespace
} // namespace assay::fuzz
