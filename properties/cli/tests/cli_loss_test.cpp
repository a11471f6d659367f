// SPDX-License-Identifier: Apache-2.0
// Nothing is lost: findings and verdicts when a folder, a file, a signal or a byte is in the way.
#include <signal.h>

#include "properties/cli/session/session.h"
#include "properties/tests/cli_fixture.h"

namespace assay {
namespace {

assay_kernel merge_with(assay_status (*run)(const void *)) {
  assay_kernel kernel = reference::kernel("reference_merge_state");
  kernel.run = run;
  return kernel;
}

const std::vector<std::string> kCheck = {"check", "--property", "within_budget", "--cases", "5"};

std::vector<std::string> with(std::vector<std::string> args,
                              std::initializer_list<std::string> more) {
  args.insert(args.end(), more);
  return args;
}

/// What follows `label` up to the end of its line.
std::string after(const std::string &text, const std::string &label) {
  const size_t at = text.find(label);
  if (at == text.npos) return "";
  return text.substr(at + label.size(), text.find('\n', at) - at - label.size());
}

std::vector<std::string> words(const std::string &line) {
  std::istringstream in(line);
  std::vector<std::string> out;
  for (std::string word; in >> word;)
    out.push_back(word);
  return out;
}

TEST_F(Cli, AFolderThatIsAFileIsRefusedBeforeTheWork) {
  const assay_kernel wrong = merge_with(first_input);
  const Ran r = program(one_kernel(wrong), with(kCheck, {"--out", file("taken", "text")}));
  expect_error(r, kExitUsage, "taken: cannot write there");
  EXPECT_EQ(r.out, "");
  // Permissions allow root to write there; nothing can.
  const Ran proc = program(one_kernel(wrong), with(kCheck, {"--out", "/proc/assay/found"}));
  expect_error(proc, kExitUsage, "/proc/assay/found: cannot write there");
  const assay_kernel right = reference::kernel("reference_merge_state");
  const Ran good = program(one_kernel(right), with(kCheck, {"--out", path("a/b")}));
  EXPECT_EQ(good.code, kExitPass) << good.out << good.err;
  EXPECT_FALSE(fs::exists(path("a"))) << "a run without findings leaves no folder behind";
}

TEST_F(Cli, AFindingThatCannotBeWrittenIsPrintedWhole) {
  const assay_kernel wrong = merge_with(first_input);
  const auto args = with(kCheck, {"--out", path("found"), "--json", path("out.json")});
  const std::string name = after(program(one_kernel(wrong), args).out, "assay replay ");
  ASSERT_TRUE(fs::remove(name));
  fs::create_directory(name + ".part"); // in the way of the writer
  const Ran r = program(one_kernel(wrong), args);
  EXPECT_EQ(r.code, kExitFinding) << r.err;
  EXPECT_NE(r.out.find(name + ": cannot write; the case:\nassay-case 1\n"), r.out.npos) << r.out;
  EXPECT_NE(r.out.find("\nend\n"), r.out.npos) << r.out;
  EXPECT_FALSE(fs::exists(name));
  EXPECT_EQ(json("out.json")["exit"], 1);
}

TEST_F(Cli, AFindingOutlivesAJsonThatCannotBeWritten) {
  if (!fs::exists("/dev/full")) GTEST_SKIP() << "no /dev/full";
  const assay_kernel wrong = merge_with(first_input);
  const auto args = with(kCheck, {"--out", path("found"), "--json", "/dev/full"});
  Ran r = program(one_kernel(wrong), args);
  EXPECT_EQ(r.code, kExitFinding);
  EXPECT_EQ(r.err, "assay: --json /dev/full: cannot write\n");
  r = program(one_kernel(reference::kernel("reference_merge_state")), args);
  EXPECT_EQ(r.code, kExitHarness);
}

// Hours may follow, and a machine that dies.
TEST_F(Cli, AFindingIsOnDiskBeforeTheNextPropertyRuns) {
  static std::string folder;
  static int calls_after;
  folder = path("found");
  calls_after = 0;
  const assay_kernel wrong = merge_with([](const void *params) -> assay_status {
    calls_after += fs::exists(folder);
    return first_input(params);
  });
  const Ran r = program(one_kernel(wrong),
                        {"check", "--threads", "1", "--cases", "1", "--out", path("found")});
  EXPECT_EQ(r.code, kExitFinding);
  EXPECT_GT(calls_after, 0);
}

TEST_F(Cli, PrintedCommandsNameThePluginAndSurviveAShell) {
  SessionOptions options;
  const auto printed = [&] {
    std::ostringstream none;
    return Session{options, &reference::plugin(), {none, none, false}, none}.kernel_options();
  };
  EXPECT_EQ(printed(), "");
  options.plugin = "my kernels/it's.so";
  EXPECT_EQ(printed(), " --plugin 'my kernels/it'\\''s.so'");
  options.plugin = "./own.so";
  options.replay_scores = true;
  EXPECT_EQ(printed(), " --plugin ./own.so --replay-scores");
  options.assumed = {.no_empty_requests = true, .finite_pool = true};
  EXPECT_EQ(printed(), " --plugin ./own.so --replay-scores --assume no_empty_requests,finite_pool");
  EXPECT_EQ(shell_quoted(""), "''");
  const assay_kernel wrong = merge_with(first_input);
  const Ran r = program(one_kernel(wrong), with(kCheck, {"--out", "my dir"}));
  EXPECT_NE(r.out.find("assay replay 'my dir/"), r.out.npos) << r.out;
}

assay_status interrupted_and_wrong(const void *params) {
  raise(SIGINT);
  return first_input(params);
}

assay_status interrupted(const void *params) {
  raise(SIGTERM);
  return reference::kernel("reference_merge_state").run(params);
}

TEST_F(Cli, ASignalEndsTheRunWithItsReport) {
  // A second signal would end this process.
  const std::vector<std::string> check = {"check",  "--threads",      "1",     "--budget",   "1h",
                                          "--json", path("out.json"), "--out", path("found")};
  static bool once = false;
  const auto run_once = [](const void *params) -> assay_status {
    if (once) return first_input(params);
    once = true;
    return interrupted_and_wrong(params);
  };
  Ran r = program(one_kernel(merge_with(run_once)), check);
  EXPECT_EQ(r.code, kExitFinding) << r.out << r.err;
  EXPECT_NE(r.out.find("INTERRUPTED"), r.out.npos) << r.out;
  EXPECT_TRUE(fs::exists(after(r.out, "assay replay "))) << r.out;
  EXPECT_EQ(json("out.json")["findings"], 1);
  // Without a finding it is no pass.
  fs::remove_all(path("found"));
  static bool again = false;
  const auto good_once = [](const void *params) -> assay_status {
    if (again) return reference::kernel("reference_merge_state").run(params);
    again = true;
    return interrupted(params);
  };
  r = program(one_kernel(merge_with(good_once)), check);
  EXPECT_EQ(r.code, kExitHarness) << r.out << r.err;
}

/// Wrong for one shape in some hundred.
assay_status rarely_wrong(const void *params) {
  const auto &p = *static_cast<const assay_merge_state_params *>(params);
  if (p.num_rows == 3 && p.num_heads >= 3) return first_input(params);
  return reference::kernel("reference_merge_state").run(params);
}

assay_status often_wrong(const void *params) {
  const auto &p = *static_cast<const assay_merge_state_params *>(params);
  if (p.num_heads > 1) return first_input(params);
  return reference::kernel("reference_merge_state").run(params);
}

TEST_F(Cli, TheLineThatSaysHowACaseWasDrawnDrawsItAgain) {
  const auto findings = [&](const assay_kernel &wrong, const char *cases) {
    int found = 0;
    for (const char *seed : {"1", "2", "3", "4"}) {
      const Ran first =
          program(one_kernel(wrong), {"--seed", seed, "check", "--property", "within_budget",
                                      "--cases", cases, "--out", path("found")});
      if (first.code != kExitFinding) continue;
      ++found;
      fs::remove_all(path("found"));
      auto again = words(after(first.out, "drawn by:  assay "));
      EXPECT_LE(std::stoi(after(first.out, "--cases ")), std::stoi(cases));
      again.insert(again.end(), {"--out", path("found")});
      const Ran second = program(one_kernel(wrong), again);
      EXPECT_EQ(second.code, kExitFinding) << second.out << second.err;
      EXPECT_EQ(after(second.out, "assay replay "), after(first.out, "assay replay "));
      fs::remove_all(path("found"));
    }
    return found;
  };
  EXPECT_GE(findings(merge_with(rarely_wrong), "400"), 2);
  // What fails behind the one case was drawn for a class that had none.
  EXPECT_GE(findings(merge_with(often_wrong), "1"), 2);
}

TEST_F(Cli, AWrongFileNameIsRefusedBeforeTheOthersRun) {
  const std::string good = file("a.case", "assay-case 1\nfamily = merge_state\nend\n");
  const Ran r = assay_program({"replay", good, path("absent.case")});
  expect_error(r, kExitUsage, "absent.case: cannot read");
  EXPECT_EQ(r.out, "");
}

TEST_F(Cli, ExplainAndShrinkWriteJson) {
  const assay_kernel wrong = merge_with(first_input);
  const std::string a = file("a.case", "assay-case 1\nfamily = merge_state\nhead_dim = 64\n"
                                       "property = within_budget\nend\n");
  const std::string out = path("out.json");
  EXPECT_EQ(program(one_kernel(wrong), {"shrink", a, "--out", path("small"), "--json", out}).code,
            kExitFinding);
  EXPECT_EQ(json("out.json")["out"], path("small"));
  EXPECT_GE(json("out.json")["steps"], 1);
  const Ran explained = program(one_kernel(wrong), {"--quiet", "explain", a, "--json", out});
  EXPECT_EQ(explained.code, kExitFinding);
  EXPECT_EQ(explained.out.find("classes: "), explained.out.npos);
  EXPECT_EQ(json("out.json")["results"][0]["verdict"], "FAIL");
  EXPECT_NE(json("out.json")["explanation"].get<std::string>().find("state a"), std::string::npos);
}

assay_status infinite(const void *params) {
  const auto &p = *static_cast<const assay_merge_state_params *>(params);
  reference::kernel("reference_merge_state").run(params);
  for (int r = 0; r < p.num_rows && p.lse != nullptr; ++r)
    p.lse[r * p.lse_stride_row] = 1e30f;
  return ASSAY_OK;
}

TEST_F(Cli, JsonTakesEveryByteAndEveryNumber) {
  assay_kernel wrong =
      merge_with([](const void *) -> assay_status { return ASSAY_INVALID_ARGUMENT; });
  wrong.last_error = [] { return "bad \xff byte"; };
  const auto args = with(kCheck, {"--out", path("found"), "--json", path("out.json")});
  EXPECT_EQ(program(one_kernel(wrong), args).code, kExitFinding);
  EXPECT_EQ(json("out.json")["exit"], 1);
  const std::string strange = file("x\xff.case", "assay-case 1\nfamily = merge_state\nend\n");
  EXPECT_EQ(assay_program({"replay", strange, "--json", path("out.json")}).code, kExitPass);
  EXPECT_EQ(json("out.json")["exit"], 0);
  EXPECT_EQ(program(one_kernel(merge_with(infinite)), args).code, kExitFinding);
  EXPECT_TRUE(json("out.json")["kernels"][0]["worst"]["ratio_lse"].is_number());
}

TEST_F(Cli, AKernelThatNothingConcernsIsNoPass) {
  assay_kernel alien = reference::kernel("reference_merge_state");
  assay_plugin plugin = one_kernel(alien);
  std::vector<assay_kernel> kernels = {alien, alien};
  kernels[1].family = static_cast<assay_family>(9);
  kernels[1].name = "alien";
  plugin.kernels = kernels.data();
  plugin.num_kernels = 2;
  const Ran r = program(plugin, {"check", "--cases", "1"});
  EXPECT_EQ(r.code, kExitHarness) << r.out;
  EXPECT_NE(r.out.find("INCOMPLETE alien: no property says anything about it"), r.out.npos);
}

TEST_F(Cli, OutputThatCannotBeWrittenIsNoPass) {
  std::ostringstream out, err;
  out.setstate(std::ios::badbit);
  const char *args[] = {"assay", "list", "kernels"};
  EXPECT_EQ(run_cli(3, args, reference::plugin(), {out, err, false}), kExitHarness);
  EXPECT_EQ(err.str(), "assay: standard output: cannot write\n");
}

TEST_F(Cli, ValuesAreWhatTheySay) {
  for (const char *seed : {"-1", "18446744073709551616", "1e3", " 1", ""})
    expect_error(assay_program({"list", "--seed", seed}), kExitUsage, "--seed");
  for (const char *option : {"--kernel", "--property", "--json", "--budget", "--out", "--plugin"})
    expect_error(assay_program({"check", option, ""}), kExitUsage, std::string(option) + ":");
  expect_error(assay_program({"check", "--budget", "5"}), kExitUsage, "such as 60s");
  expect_error(assay_program({"gat", "--base", "HEAD"}), kExitUsage, "unknown command 'gat'");
  expect_error(assay_program({"--quiet", "judge", "a.npz"}), kExitUsage,
               "stands before its options");
  expect_error(assay_program({}), kExitUsage, "one of list, check");
  EXPECT_EQ(assay_program({"--version"}).out.rfind("assay ", 0), 0u);
  expect_error(assay_program({"check", "--kernel", "\033[31m"}), kExitUsage, "'?[31m'");
}

} // namespace
} // namespace assay
