// SPDX-License-Identifier: Apache-2.0
// Positive controls of the targets that drive the kernels' own parts: the seeds see every mistake of
// fuzz/planted, and nothing in the kernels as they are.
#include <gtest/gtest.h>

#include "fuzz/paths/plant.h"
#include "fuzz/paths/tile_judge.h"
#include "fuzz/tests/seeds.h"

namespace assay::fuzz {
namespace {

std::vector<std::string> planted_for(const std::string &target) {
  std::vector<std::string> names;
  for (const auto &entry : std::filesystem::directory_iterator(ASSAY_PLANTED))
    if (entry.path().filename().string().rfind(target + "_", 0) == 0)
      names.push_back(entry.path().stem());
  std::sort(names.begin(), names.end());
  return names;
}

class PlantedInTile : public testing::TestWithParam<std::string> {};
TEST_P(PlantedInTile, is_seen_by_the_seeds) {
  const int id = planted_id(GetParam());
  ASSERT_NE(id, 0) << "its text is not in the kernels";
  const mutants::Activate activate(id);
  EXPECT_NE(first_violation("fuzz_tile", check_tile), "");
}
INSTANTIATE_TEST_SUITE_P(All, PlantedInTile, testing::ValuesIn(planted_for("tile")),
                         [](const auto &tested) { return tested.param; });

TEST(Planted, nothing_is_seen_without_a_mistake) {
  EXPECT_EQ(first_violation("fuzz_tile", check_tile), "");
}

} // namespace
} // namespace assay::fuzz
