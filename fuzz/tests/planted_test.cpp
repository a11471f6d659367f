// SPDX-License-Identifier: Apache-2.0
// Positive controls of the targets that drive the kernels' own parts: the seeds see every mistake
// of fuzz/planted, and nothing in the kernels as they are.
#include <gtest/gtest.h>

#include "fuzz/paths/merge_judge.h"
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

/// A mistake of fuzz/planted and the target that its name begins with.
class Planted : public testing::TestWithParam<std::string> {
protected:
  static std::string first_violation_of(const std::string &target) {
    return target == "tile" ? first_violation("fuzz_tile", check_tile)
                            : first_violation("fuzz_merge", check_merge);
  }
};

TEST_P(Planted, is_seen_by_the_seeds) {
  const int id = planted_id(GetParam());
  ASSERT_NE(id, 0) << "its text is not in the kernels";
  const mutants::Activate activate(id);
  EXPECT_NE(first_violation_of(GetParam().substr(0, GetParam().find('_'))), "");
}
INSTANTIATE_TEST_SUITE_P(Tile, Planted, testing::ValuesIn(planted_for("tile")),
                         [](const auto &tested) { return tested.param; });
INSTANTIATE_TEST_SUITE_P(Merge, Planted, testing::ValuesIn(planted_for("merge")),
                         [](const auto &tested) { return tested.param; });

TEST(PlantedNothing, is_seen_in_the_kernels_as_they_are) {
  EXPECT_EQ(first_violation("fuzz_tile", check_tile), "");
  EXPECT_EQ(first_violation("fuzz_merge", check_merge), "");
}

} // namespace
} // namespace assay::fuzz
