// SPDX-License-Identifier: Apache-2.0
// The ledger: fixed findings must pass, open ones must fail, quarantined ones count for nothing
// until their day is over.
#include "properties/case/ledger.h"

#include <unistd.h>

#include "properties/case/case_text.h"
#include "properties/cli/findings/kept_verdict.h"
#include "properties/tests/cli_fixture.h"

namespace assay {
namespace {

std::string merge_case(const std::string &lines) {
  return "assay-case 1\nkernel = reference_merge_state\nproperty = within_budget\n" + lines +
         "family = merge_state\nrows = 61\nend\n";
}

Case parsed(const std::string &lines) {
  const auto result = parse_case(merge_case(lines));
  if (const auto *error = std::get_if<CaseError>(&result)) ADD_FAILURE() << error->message;
  return std::holds_alternative<Case>(result) ? std::get<Case>(result) : Case{};
}

std::string refusal(const std::string &lines) {
  const auto result = parse_case(merge_case(lines));
  const auto *error = std::get_if<CaseError>(&result);
  return error == nullptr ? "accepted" : error->message;
}

TEST(Ledger, LinesOfACase) {
  EXPECT_EQ(parsed("").entry, LedgerEntry{});
  EXPECT_EQ(parsed("status = fixed\n").entry, LedgerEntry{});
  EXPECT_EQ(parsed("status = open\n").entry.status, CaseStatus::kOpen);
  const Case held = parsed("status = quarantined until 2026-02-28 # a comment\nissue = see #17\n");
  EXPECT_EQ(held.entry, (LedgerEntry{CaseStatus::kQuarantined, "2026-02-28", "see #17"}));
  EXPECT_EQ(std::get<Case>(parse_case(format_case(held))), held);
  Case open = held;
  open.entry = {CaseStatus::kOpen, "", "https://example.org/3"};
  EXPECT_EQ(std::get<Case>(parse_case(format_case(open))), open);
  // What was written before there was a ledger reads and writes as it did.
  EXPECT_EQ(format_case(parsed("")).find("status"), std::string::npos);
}

TEST(Ledger, WhatIsNoStatusIsRefused) {
  EXPECT_EQ(refusal("status = broken\n"),
            "status: 'broken' is not fixed, open or quarantined until YYYY-MM-DD");
  for (const char *day : {"2026-02-29", "2026-13-01", "26-01-01", "2026-1-01", "2026-01-01x", ""})
    EXPECT_NE(refusal(std::string("status = quarantined until ") + day + "\n"), "accepted") << day;
  EXPECT_EQ(refusal("status = quarantined until 2026-02-30\n"),
            "status: '2026-02-30' is no day as YYYY-MM-DD");
  EXPECT_NE(refusal("status = open\nstatus = open\n").find("given twice"), std::string::npos);
}

TEST(Ledger, AQuarantineEndsAfterItsDay) {
  const LedgerEntry held{CaseStatus::kQuarantined, "2026-02-28", ""};
  EXPECT_EQ(held.on("2026-02-28"), CaseStatus::kQuarantined);
  EXPECT_EQ(held.on("2026-03-01"), CaseStatus::kOpen);
  EXPECT_EQ(LedgerEntry{}.on("2026-03-01"), CaseStatus::kFixed);
  EXPECT_EQ(today().size(), 10u);
  EXPECT_GT(today(), "2026-01-01");
}

TEST(Ledger, VerdictsByStatus) {
  using Kind = CheckResult::Kind;
  const std::string day = "2026-03-01";
  const LedgerEntry fixed, open{CaseStatus::kOpen, "", ""};
  EXPECT_EQ(judge_kept(fixed, {Kind::kPass, Kind::kFail, Kind::kFail}, day).findings, 2);
  EXPECT_EQ(judge_kept(fixed, {Kind::kUndecided}, day).undecided, 1);
  // One property that fails is enough; without any it is no longer open.
  EXPECT_EQ(judge_kept(open, {Kind::kPass, Kind::kFail}, day).findings, 0);
  EXPECT_TRUE(judge_kept(open, {Kind::kPass, Kind::kDiscard}, day).unexpected_pass);
  EXPECT_EQ(judge_kept(open, {Kind::kPass}, day).findings, 1);
  EXPECT_EQ(judge_kept(open, {Kind::kDiscard}, day).findings, 0);
  EXPECT_EQ(judge_kept(open, {Kind::kUndecided, Kind::kPass}, day).undecided, 1);
  EXPECT_EQ(judge_kept({CaseStatus::kQuarantined, day, ""}, {Kind::kPass}, day).findings, 0);
  EXPECT_EQ(judge_kept({CaseStatus::kQuarantined, "2026-02-28", ""}, {Kind::kPass}, day).findings,
            1);
}

class LedgerCli : public Cli {
protected:
  void keep(const std::string &lines) {
    fs::create_directories(path("kept"));
    file("kept/a.case", merge_case(lines));
  }
  Ran check(const assay_plugin &plugin) const {
    return program(plugin,
                   {"check", "--kernel", "reference_merge_state", "--property", "within_budget",
                    "--cases", "2", "--findings", path("kept"), "--json", path("out.json")});
  }
  Ran replay(const assay_plugin &plugin) const {
    return program(plugin, {"replay", path("kept/a.case")});
  }
  /// Wrong with as many rows as the kept case has, more than are drawn.
  static assay_plugin wrong() {
    static assay_kernel kernel = reference::kernel("reference_merge_state");
    kernel.run = [](const void *params) -> assay_status {
      const bool kept = static_cast<const assay_merge_state_params *>(params)->num_rows == 61;
      const reference::WithBug defect(kept ? reference::Bug::kMeanLse : reference::Bug::kNone);
      return reference::kernel("reference_merge_state").run(params);
    };
    return one_kernel(kernel);
  }
  const assay_plugin right_ = reference::plugin();
};

TEST_F(LedgerCli, AnOpenFindingMustStillFail) {
  keep("status = open\nissue = #4\n");
  Ran r = check(wrong());
  EXPECT_EQ(r.code, kExitPass) << r.out << r.err;
  EXPECT_NE(r.out.find("replayed 1 findings, 0 fail, 1 open"), r.out.npos) << r.out;
  EXPECT_EQ(json("out.json")["replayed"]["results"][0]["verdict"], "open");
  EXPECT_EQ(replay(wrong()).code, kExitPass);
  r = check(right_);
  EXPECT_EQ(r.code, kExitFinding) << r.out;
  EXPECT_NE(r.out.find("UNEXPECTED PASS " + path("kept/a.case") +
                       ": its status is 'open', but it "
                       "passes: set 'status = fixed' (issue #4)\n"),
            r.out.npos)
      << r.out;
  r = replay(right_);
  EXPECT_EQ(r.code, kExitFinding);
  EXPECT_NE(r.out.find("set 'status = fixed'"), r.out.npos) << r.out;
}

// What a first run has written is the mistake that the second one finds again.
TEST_F(LedgerCli, AMistakeIsOneFindingOnASecondRunInItsFolder) {
  static assay_kernel kernel = reference::kernel("reference_merge_states");
  kernel.run = [](const void *params) -> assay_status {
    const reference::WithBug defect(reference::Bug::kFirstTwice);
    return reference::kernel("reference_merge_states").run(params);
  };
  const assay_plugin plugin = one_kernel(kernel);
  fs::create_directories(path("none"));
  const auto check = [&] {
    const Ran r = program(plugin, {"check", "--cases", "4", "--findings", path("none"), "--out",
                                   path("found"), "--json", path("out.json")});
    EXPECT_EQ(r.code, kExitFinding) << r.err;
    EXPECT_NE(r.out.find(" failing, 1 finding, "), r.out.npos) << r.out;
    return r.out;
  };
  const std::string first = check();
  ASSERT_GE(json("out.json")["found"].size(), 3u);
  const std::string second = check();
  const nlohmann::json results = json("out.json")["replayed"]["results"];
  ASSERT_GE(results.size(), 3u);
  for (const auto &r : results) {
    EXPECT_EQ(r["verdict"], "FAIL");
    EXPECT_NE(r["same_as"], "") << r;
  }
  EXPECT_NE(second.find(" more kept cases and properties that show it\n"), second.npos) << second;
}

TEST_F(LedgerCli, AFixedFindingMustPass) {
  keep("status = fixed\n");
  EXPECT_EQ(check(right_).code, kExitPass);
  EXPECT_EQ(check(wrong()).code, kExitFinding);
  EXPECT_EQ(replay(right_).code, kExitPass);
  EXPECT_EQ(replay(wrong()).code, kExitFinding);
}

TEST_F(LedgerCli, AQuarantinedFindingIsRunAndNotCounted) {
  keep("status = quarantined until 2999-12-31\n");
  for (const assay_plugin &plugin : {wrong(), right_}) {
    const Ran r = check(plugin);
    EXPECT_EQ(r.code, kExitPass) << r.out << r.err;
    EXPECT_NE(r.out.find("QUARANTINED reference_merge_state within_budget: "), r.out.npos) << r.out;
    EXPECT_NE(r.out.find("0 fail, 1 quarantined"), r.out.npos) << r.out;
    EXPECT_EQ(replay(plugin).code, kExitPass);
  }
  keep("status = quarantined until 2000-01-01\n");
  EXPECT_EQ(check(wrong()).code, kExitPass);
  EXPECT_EQ(check(right_).code, kExitFinding);
  EXPECT_EQ(replay(right_).code, kExitFinding);
}

// It may be held because it ends the process that runs it.
TEST_F(LedgerCli, AQuarantinedCrashDoesNotEndTheRun) {
  keep("status = quarantined until 2999-12-31\n");
  static assay_kernel dies = reference::kernel("reference_merge_state");
  dies.run = [](const void *) -> assay_status { _exit(0); };
  const Ran r = replay(one_kernel(dies));
  EXPECT_EQ(r.code, kExitPass) << r.out << r.err;
  EXPECT_NE(r.out.find("held"), r.out.npos) << r.out;
  EXPECT_NE(r.out.find("exit(0)"), r.out.npos) << r.out;
}

} // namespace
} // namespace assay
