// SPDX-License-Identifier: Apache-2.0
// Positive controls of the targets that drive the kernels' own parts: the seeds see every mistake
// that says so, and nothing in the kernels as they are.
#include <gtest/gtest.h>

#include "fuzz/paths/merge_judge.h"
#include "fuzz/paths/tile_judge.h"
#include "fuzz/tests/mutants_seen.h"

namespace assay::fuzz {
namespace {

std::string first_violation_of(const std::string &target) {
  return first_violation(target.c_str(), target == "fuzz_tile" ? check_tile : check_merge);
}

class Planted : public testing::TestWithParam<Seen> {};

TEST_P(Planted, is_seen_by_the_seeds) {
  const mutants::Activate activate(GetParam().mutant->id);
  EXPECT_NE(first_violation_of(GetParam().target), "");
}
INSTANTIATE_TEST_SUITE_P(all, Planted, testing::ValuesIn(seen_by({"fuzz_tile", "fuzz_merge"})),
                         name_of);

TEST(Planted, none_is_seen_in_the_kernels_as_they_are) {
  for (const char *target : {"fuzz_tile", "fuzz_merge"})
    EXPECT_EQ(first_violation_of(target), "");
}

// A mistake whose text is no longer in the kernels is not compiled.
TEST(Planted, every_mistake_is_compiled) {
  for (const char *name : mutants::omitted())
    ADD_FAILURE() << name;
}

} // namespace
} // namespace assay::fuzz
