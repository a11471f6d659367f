// SPDX-License-Identifier: Apache-2.0
// The files of a working tree as the gate sees them.
#include <chrono>
#include <thread>

#include "properties/tools/gate/git.h"
#include "properties/tools/gate/tests/gate_repository.h"

namespace assay::gate {
namespace {

using GateGit = GateRepository;

TEST_F(GateGit, AnEditOfEqualLengthInTheSecondOfTheCommitIsSeen) {
  const auto second = [] {
    return std::chrono::floor<std::chrono::seconds>(
        std::chrono::system_clock::now().time_since_epoch());
  };
  std::chrono::seconds began;
  for (int i = 0; i == 0 || second() != began; ++i) { // git compares whole seconds
    write("merge.cpp", "a + b\n" + std::to_string(i));
    began = second();
    commit("base");
    write("merge.cpp", "b + a\n" + std::to_string(i));
  }
  std::this_thread::sleep_until(
      std::chrono::system_clock::time_point(began + std::chrono::milliseconds(1050)));
  const Repository repository(repo().string());
  const std::vector<Change> changes =
      repository.changes("HEAD", repository.commit_of_working_tree());
  ASSERT_EQ(changes.size(), 1u);
  EXPECT_EQ(changes[0].path, "merge.cpp");
}

} // namespace
} // namespace assay::gate
