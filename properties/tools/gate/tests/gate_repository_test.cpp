// SPDX-License-Identifier: Apache-2.0
// The gate on repositories made up for it: a plugin of one kernel, built by one g++ line, and what
// a change does to it.
#include <chrono>
#include <thread>

#include <nlohmann/json.hpp>

#include "properties/tools/gate/error.h"
#include "properties/tools/gate/git.h"
#include "properties/tools/gate/reports.h"
#include "properties/tools/gate/tests/gate_repository.h"

namespace assay::gate {
namespace {

std::vector<std::string> red_ids(const json &document) {
  std::vector<std::string> out;
  for (const json &line : document.at("red"))
    out.push_back(line.at("id"));
  return out;
}

using Ids = std::vector<std::string>;

TEST_F(GateRepository, ARightRefactoringPasses) {
  edit("const float sum = wa + wb;", "const float sum = wb + wa;");
  const json document = gate();
  EXPECT_EQ(document.at("exit"), kPass) << document.at("red").dump(2);
  EXPECT_EQ(document.at("mode"), "plugin");
  EXPECT_EQ(document.at("kernels").at(0).at("name"), "tiny_merge");
  EXPECT_EQ(document.at("kernels").at(0).at("touched"), true);
  EXPECT_GT(document.at("kernels").at(0).at("cases").get<int>(), 300);
  EXPECT_EQ(document.at("plan").at("long_cases"), 20);
  EXPECT_EQ(verdict_word(document), "PASS");
  // Neither trees nor branches are left behind, and the change lies there as it was.
  EXPECT_FALSE(fs::exists(repo() / "build/gate/head"));
  EXPECT_NE(read_text(repo() / "merge.cpp").find("wb + wa"), std::string::npos);
}

TEST_F(GateRepository, AWrongKernelIsBlockedWithACaseAndAgainOnARerun) {
  edit("const float sum = wa + wb;", "const float sum = wa + wb * 1.0001f;");
  commit("wrong");
  git({"branch", "--quiet", "-f", "old", "HEAD~1"});
  Options o = options();
  o.base = "old";
  o.head = "main";
  const Progress progress{.step = [](const std::string &) {}, .waiting = nullptr};
  const json first = run_gate(o, progress), second = run_gate(o, progress);
  EXPECT_EQ(first.at("exit"), kFinding);
  ASSERT_EQ(red_ids(first), Ids{"new-finding"});
  EXPECT_EQ(first.at("red"), second.at("red"));
  const json &line = first.at("red").at(0);
  EXPECT_EQ(line.at("kernel"), "tiny_merge");
  EXPECT_TRUE(fs::exists(line.at("file").get<std::string>()));
  const json &found = first.at("findings").at(0);
  EXPECT_EQ(found.at("state"), "new");
  EXPECT_EQ(found.at("head"), (json{{"runs", 3}, {"fails", 3}}));
  EXPECT_EQ(found.at("base"), (json{{"runs", 3}, {"fails", 0}}));
}

TEST_F(GateRepository, AFindingCannotBeAccepted) {
  edit("const float sum = wa + wb;", "const float sum = wa + wb * 1.0001f;");
  EXPECT_EQ(gate({"new-finding"}).at("exit"), kFinding);
}

TEST_F(GateRepository, AKnownFindingStaysGreenAndAFixIsSaid) {
  edit("const float sum = wa + wb;", "const float sum = wa + wb * 1.0001f;");
  commit("wrong from the start");
  edit("const float top = std::max(a.lse, b.lse);",
       "const float top = a.lse > b.lse ? a.lse : b.lse;");
  const json known = gate();
  EXPECT_EQ(known.at("exit"), kPass) << known.at("red").dump(2);
  ASSERT_FALSE(known.at("findings").empty());
  EXPECT_EQ(known.at("findings").at(0).at("state"), "known");
  edit("wb * 1.0001f", "wb");
  const json fixed = gate();
  EXPECT_EQ(fixed.at("exit"), kPass) << fixed.at("red").dump(2);
  ASSERT_FALSE(fixed.at("findings").empty());
  EXPECT_EQ(fixed.at("findings").at(0).at("state"), "fixed");
}

TEST_F(GateRepository, AWiderDeclarationIsRedAndDoesNotHideTheError) {
  edit("const float sum = wa + wb;", "const float sum = wa + wb * 1.0001f;");
  edit("kExp2Error = 0x1p-22;", "kExp2Error = 0x1p-8;");
  const json document = gate({"declaration-wider"});
  EXPECT_EQ(document.at("exit"), kFinding);
  const Ids red = red_ids(document);
  EXPECT_NE(std::find(red.begin(), red.end(), "new-finding"), red.end()); // held to base's
  EXPECT_EQ(document.at("accepted").size(), 1u);
}

TEST_F(GateRepository, ANarrowerEnvelopeIsRed) {
  edit("if (p.dtype == ASSAY_FP32) return ASSAY_OK;",
       "if (p.dtype == ASSAY_FP32 && p.head_dim != 256) return ASSAY_OK;");
  const json document = gate();
  EXPECT_EQ(document.at("exit"), kFinding);
  const Ids red = red_ids(document);
  EXPECT_NE(std::find(red.begin(), red.end(), "envelope-narrower"), red.end());
}

TEST_F(GateRepository, AKernelThatCachesIsRed) {
  edit("  const float top =", "  static float last = 0;\n  last += 1;\n  const float top =");
  EXPECT_EQ(red_ids(gate()), Ids{"special-case"});
  EXPECT_EQ(gate({"special-case"}).at("exit"), kPass);
}

TEST_F(GateRepository, ADeletedFindingIsRedAndAnAddedOneIsReplayed) {
  edit("const float sum = wa + wb;", "const float sum = wa + wb * 1.0001f;");
  const json blocked = gate();
  const std::string text = blocked.at("findings").at(0).at("case");
  commit("wrong from the start");
  edit("wb * 1.0001f", "wb");
  write("findings/half.case", text);
  const json document = gate();
  EXPECT_EQ(document.at("exit"), kPass) << document.at("red").dump(2);
  EXPECT_EQ(document.at("findings").at(0).at("state"), "fixed");
  commit("fixed, and kept");
  fs::remove(repo() / "findings/half.case");
  EXPECT_EQ(red_ids(gate()), Ids{"finding-deleted"});
  write("findings/half.case", text);
  edit("const float sum = wa + wb;", "const float sum = wa + wb * 1.0001f;");
  const Ids red = red_ids(gate());
  EXPECT_NE(std::find(red.begin(), red.end(), "kept-finding"), red.end());
}

TEST_F(GateRepository, WhatDoesNotBuildOrDiesIsRed) {
  edit("const float sum = wa + wb;", "const float sum = ;");
  const json broken = gate();
  EXPECT_EQ(red_ids(broken), Ids{"does-not-build"});
  EXPECT_NE(broken.at("red").at(0).at("text").get<std::string>().find("error"), std::string::npos);
  edit("const float sum = ;", "const float sum = wa + wb; if (p_crash) __builtin_trap();");
  edit("float merge_row(", "bool p_crash = true;\nfloat merge_row(");
  EXPECT_EQ(red_ids(gate()), Ids{"new-finding"});
}

TEST_F(GateRepository, KernelsOfTheFileAloneAreJudgedAndTouched) {
  std::string project = read_text(repo() / "assay.toml");
  write("assay.toml",
        project + "kernels = [\"tiny_merge\"]\n[kernels]\ntiny_merge = \"merge.cpp\"\n");
  commit("which");
  write("tests/test.cpp", "int main() { return 0; }\n");
  const json untouched = gate();
  EXPECT_EQ(untouched.at("exit"), kPass) << untouched.at("red").dump(2);
  EXPECT_EQ(untouched.at("kernels").at(0).at("touched"), false);
  EXPECT_EQ(untouched.at("plan").at("long_cases"), 0);
  edit("const float sum = wa + wb;", "const float sum = wb + wa;");
  const json touched = gate();
  EXPECT_EQ(touched.at("exit"), kPass) << touched.at("red").dump(2);
  EXPECT_EQ(touched.at("kernels").at(0).at("touched"), true);
  EXPECT_EQ(touched.at("plan").at("long_cases"), 20);
}

TEST_F(GateRepository, WordsRunNothing) {
  write("README.md", "other words\n");
  EXPECT_EQ(gate().at("exit"), kPass);
  EXPECT_EQ(gate().at("plan").at("kind"), "nothing");
  Options all = options();
  all.all = true;
  const json document = run_gate(all, {.step = [](const std::string &) {}, .waiting = nullptr});
  EXPECT_EQ(document.at("exit"), kPass) << document.at("red").dump(2);
  EXPECT_EQ(document.at("plan").at("kind"), "kernels");
  EXPECT_EQ(document.at("kernels").at(0).at("touched"), true);
}

TEST_F(GateRepository, BadNamesAreUsage) {
  Options o = options();
  o.base = "nowhere";
  const auto code = [&] {
    try {
      run_gate(o, {.step = [](const std::string &) {}, .waiting = nullptr});
    } catch (const GateError &e) {
      return e.code;
    }
    return 0;
  };
  EXPECT_EQ(code(), kUsage);
  o.base = "main";
  o.folder = "/";
  EXPECT_EQ(code(), kUsage);
}

TEST_F(GateRepository, ReportsHoldHostileText) {
  json document = gate();
  document["red"].push_back({{"id", "judge-changed"},
                             {"text", "<script>alert(1)</script> | `"},
                             {"kernel", "k\"><b>"},
                             {"acceptable", true},
                             {"file", ""},
                             {"reproduce", ""}});
  document["exit"] = 1;
  EXPECT_EQ(html(document).find("<script>alert"), std::string::npos);
  EXPECT_EQ(junit(document).find("<script>"), std::string::npos);
  EXPECT_NE(html(document).find("BLOCKED"), std::string::npos);
  EXPECT_NE(markdown(document).find("assay gate: BLOCKED"), std::string::npos);
  const json log = json::parse(sarif(document));
  EXPECT_EQ(log.at("runs").at(0).at("results").size(), 1u);
  EXPECT_NE(screen(document).find("--accept judge-changed"), std::string::npos);
}

// The files of a working tree as the gate sees them.
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

// Reports of base that the next gate takes instead of running base again.
using GateKeptReports = GateRepository;

TEST_F(GateKeptReports, AreThoseOfBaseWithoutFindings) {
  const fs::path kept = repo() / "build/gate/reports", run = repo() / "build/gate/base-run";
  edit("const float sum = wa + wb;", "const float sum = wb + wa;");
  const json first = gate();
  EXPECT_TRUE(fs::exists(run / "1-tiny_merge.json"));
  const json second = gate();
  EXPECT_FALSE(fs::exists(run / "1-tiny_merge.json"));
  EXPECT_EQ(second.at("exit"), kPass);
  EXPECT_EQ(second.at("kernels"), first.at("kernels"));
  // A report that an interruption cut short is none.
  for (const fs::directory_entry &file : fs::recursive_directory_iterator(kept))
    if (file.is_regular_file()) std::ofstream(file.path()) << "{\"complete\"";
  EXPECT_EQ(gate().at("kernels"), first.at("kernels"));
  EXPECT_TRUE(fs::exists(run / "1-tiny_merge.json"));
  // Another base: nothing is taken from the one before.
  edit("const float sum = wb + wa;", "const float sum = wa + wb * 1.0001f;");
  commit("wrong from the start");
  edit("const float top = std::max(a.lse, b.lse);",
       "const float top = a.lse > b.lse ? a.lse : b.lse;");
  for (int i = 0; i < 2; ++i) { // and what found something is not kept
    EXPECT_EQ(gate().at("findings").at(0).at("state"), "known");
    EXPECT_TRUE(fs::exists(run / "1-tiny_merge.json"));
  }
}

} // namespace
} // namespace assay::gate
