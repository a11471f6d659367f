// SPDX-License-Identifier: Apache-2.0
// A change of the harness, with scripts in place of the programs: what they say of mutants decides.
#include <nlohmann/json.hpp>

#include "properties/tests/own_folder.h"
#include "properties/tools/gate/harness_gate.h"

namespace assay::gate {
namespace {

class GateHarness : public InOwnFolder {
protected:
  /// Leaves with 4 for the mutants it does not notice, and with `check` for that command.
  std::string program(const char *name, const std::string &blind_to, int check = 0) const {
    return script(name, "#!/bin/sh\n[ \"$1\" = check ] && exit " + std::to_string(check) +
                            "\ncase \"$4\" in " + blind_to + ") exit 4 ;; esac\nexit 0\n");
  }
  json judge(const std::string &head, const std::string &base, double budget = 60) {
    Options options;
    options.budget = budget;
    Gate gate(options, {.step = [](const std::string &) {}, .waiting = nullptr});
    judge_right_kernels(head, gate);
    judge_mutants(
        {"a", "b", "c"}, head,
        [&] {
          ++asked_;
          return base;
        },
        gate);
    return gate.document();
  }

  int asked_ = 0;
};

TEST_F(GateHarness, ThatNoticesEveryMutantPassesWithoutBase) {
  const json document = judge(program("head", "none"), program("base", "none"));
  EXPECT_EQ(document.at("exit"), 0) << document.dump(2);
  EXPECT_EQ(asked_, 0);
  EXPECT_EQ(document.at("notes").at(0), "3 of 3 mutants run: 3 noticed, 0 not, 0 could not be run");
}

TEST_F(GateHarness, ThatLosesAMutantIsBlocked) {
  const json document = judge(program("head", "b"), program("base", "none"));
  EXPECT_EQ(document.at("exit"), 1);
  ASSERT_EQ(document.at("red").size(), 1u);
  EXPECT_EQ(document.at("red").at(0).at("text"), "mutant b lives, which base's draws notice");
  EXPECT_EQ(asked_, 1);
}

TEST_F(GateHarness, MayMissWhatBaseMisses) {
  EXPECT_EQ(judge(program("head", "b"), program("base", "b")).at("exit"), 0);
}

TEST_F(GateHarness, ThatRejectsRightKernelsIsBlocked) {
  EXPECT_EQ(judge(program("head", "none", 1), program("base", "none")).at("exit"), 1);
}

TEST_F(GateHarness, SaysHowFarTheBudgetWent) {
  const json document = judge(program("head", "none"), program("base", "none"), 1e-9);
  EXPECT_EQ(document.at("notes").at(0), "1 of 3 mutants run: 1 noticed, 0 not, 0 could not be run");
}

} // namespace
} // namespace assay::gate
