// SPDX-License-Identifier: Apache-2.0
// Kernels in processes of their own.
#include <fstream>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "properties/tests/cli_fixture.h"

namespace assay {
namespace {

TEST_F(Cli, IsolatedKernelsGiveTheSameReport) {
  const std::vector<std::string> check = {
      "check", "--property", "head_permutation", "--cases", "2", "--quiet", "--json"};
  const auto report = [&](const std::string &name, bool isolate) {
    std::vector<std::string> args = check;
    args.push_back(path(name));
    if (isolate) args.emplace_back("--isolate");
    EXPECT_EQ(assay_program(args).code, kExitPass);
    nlohmann::json j = nlohmann::json::parse(std::ifstream(path(name)));
    j.erase("seconds");
    for (const char *list : {"kernels", "properties", "runs"})
      for (auto &entry : j[list])
        entry.erase("seconds");
    return j;
  };
  EXPECT_EQ(report("here.json", false), report("apart.json", true));
}

} // namespace
} // namespace assay
