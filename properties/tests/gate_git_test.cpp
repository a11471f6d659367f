// SPDX-License-Identifier: Apache-2.0
// The files of a working tree as the gate sees them.
#include <chrono>
#include <filesystem>
#include <fstream>
#include <thread>

#include <gtest/gtest.h>

#include "properties/gate/git.h"
#include "properties/process/process.h"

namespace assay::gate {
namespace {

namespace fs = std::filesystem;

void git(const fs::path &folder, std::vector<std::string> words) {
  words.insert(words.begin(), "git");
  const process::Ended ended = process::run({.words = words,
                                             .folder = folder.string(),
                                             .environment = {},
                                             .log = "",
                                             .waiting = nullptr});
  ASSERT_TRUE(ended.ok()) << ended.err;
}

TEST(GateGit, AnEditOfEqualLengthInTheSecondOfTheCommitIsSeen) {
  const fs::path folder = fs::path(testing::TempDir()) / "assay_gate_git";
  fs::remove_all(folder);
  fs::create_directories(folder);
  git(folder, {"init", "--quiet", "--initial-branch=main"});
  git(folder, {"config", "user.name", "t"});
  git(folder, {"config", "user.email", "t@example.com"});
  const auto second = [] {
    return std::chrono::floor<std::chrono::seconds>(
        std::chrono::system_clock::now().time_since_epoch());
  };
  std::chrono::seconds began;
  for (int i = 0; i == 0 || second() != began; ++i) { // git compares whole seconds
    std::ofstream(folder / "kernel.cpp") << "a + b\n" << i << "\n";
    began = second();
    git(folder, {"add", "--all"});
    git(folder, {"commit", "--quiet", "--message", "base"});
    std::ofstream(folder / "kernel.cpp") << "b + a\n" << i << "\n";
  }
  std::this_thread::sleep_until(
      std::chrono::system_clock::time_point(began + std::chrono::milliseconds(1050)));
  const Repository repository(folder.string());
  const std::vector<Change> changes =
      repository.changes("HEAD", repository.commit_of_working_tree());
  ASSERT_EQ(changes.size(), 1u);
  EXPECT_EQ(changes[0].path, "kernel.cpp");
  fs::remove_all(folder);
}

} // namespace
} // namespace assay::gate
