// SPDX-License-Identifier: Apache-2.0
// The program over the reference kernels: output, exit codes, files.
#include <sys/wait.h>
#include <unistd.h>

#include "properties/cli/session/session.h"
#include "properties/tests/cli_fixture.h"
#include "properties/tools/process/process.h"

namespace assay {
namespace {

TEST_F(Cli, ListNamesKernelsAndProperties) {
  Ran r = assay_program({"list", "--json", path("list.json")});
  EXPECT_EQ(r.code, kExitPass);
  EXPECT_NE(r.out.find("reference_merge_states"), std::string::npos);
  EXPECT_NE(r.out.find("cascade_equals_flat"), std::string::npos);
  EXPECT_EQ(json("list.json")["kernels"].size(), 5u);
  EXPECT_EQ(assay_program({"list", "kernels"}).out.find("within_budget"), std::string::npos);
}

// Bits are replayed where they were measured; an author of a plugin may say so of others.
TEST_F(Cli, OtherBlocksThanTheMeasuredOnesAreNamedAndNotReplayed) {
  assay_kernel kernel = reference::kernel("reference_v2");
  SessionOptions options;
  const auto replays = [&] {
    std::ostringstream none;
    return Session{options, &reference::plugin(), {none, none, false}, none}.replays_scores(kernel);
  };
  const auto named = [&] {
    const std::string words = "tensor cores: 4 products a block and 23 bits, scores not replayed";
    return program(one_kernel(kernel), {"list", "kernels"}).out.find(words) != std::string::npos;
  };
  kernel.arithmetic.mma_block = 16;
  kernel.arithmetic.mma_fraction_bits = 25;
  EXPECT_TRUE(replays() && !named());
  kernel.arithmetic.mma_block = 4;
  kernel.arithmetic.mma_fraction_bits = 23;
  EXPECT_TRUE(!replays() && named());
  options.plugin = "./theirs.so";
  options.replay_scores = true;
  EXPECT_TRUE(replays());
}

// What `list cells` writes is what `bench --cells` reads.
TEST_F(Cli, CellsGoOutAndIn) {
  Ran r = assay_program({"list", "cells", "--json", path("cells.json")});
  EXPECT_EQ(r.code, kExitPass) << r.err;
  EXPECT_NE(r.out.find("llama8b b64 8k"), std::string::npos);
  EXPECT_EQ(r.out.find("within_budget"), std::string::npos);
  auto j = json("cells.json");
  for (const char *list : {"cells", "cascade", "merge"})
    for (const auto &cell : j[list])
      EXPECT_NE(r.out.find(cell["name"].get<std::string>() + " "), std::string::npos);
  expect_error(assay_program({"bench", "--cells", path("cells.json"), "--only", "no such cell"}),
               kExitUsage, "no cell's name contains 'no such cell'");
  j["cells"][2]["page_size"] = 0;
  expect_error(
      assay_program({"bench", "--cells", file("bad.json", j.dump())}), kExitUsage,
      "bad.json: cells[2] 'llama8b b1 32k': page_size is 0, expected an integer 1 .. 4096");
  expect_error(assay_program({"bench", "--cells", path("absent.json")}), kExitUsage,
               "absent.json: cannot be read");
}

TEST_F(Cli, CheckPassesAndWritesJson) {
  Ran r = assay_program({"--seed", "7", "check", "--kernel", "reference_merge_state", "--cases",
                         "5", "--json", path("out.json"), "--out", path("findings")});
  EXPECT_EQ(r.code, kExitPass) << r.out;
  EXPECT_NE(r.out.find("pass: "), std::string::npos);
  EXPECT_FALSE(fs::exists(path("findings")));
  auto j = json("out.json");
  for (const char *key : {"version", "target", "seed", "seconds", "kernels", "properties", "exit"})
    EXPECT_TRUE(j.contains(key)) << key;
  EXPECT_EQ(j["seed"], 7);
  EXPECT_EQ(j["target"], "simt");
  EXPECT_EQ(j["exit"], 0);
  EXPECT_EQ(j["kernels"][0]["name"], "reference_merge_state");
  EXPECT_EQ(j["kernels"][0]["findings"], 0);
  EXPECT_TRUE(j["kernels"][0]["worst"].contains("ratio_t0"));
  EXPECT_TRUE(j["properties"][0]["classes"].is_object());
}

TEST_F(Cli, QuietPassSaysNothing) {
  Ran r = assay_program({"--quiet", "check", "--kernel", "reference_merge_state", "--property",
                         "merge_identity", "--cases", "3"});
  EXPECT_EQ(r.code, kExitPass);
  EXPECT_EQ(r.out, "");
}

TEST_F(Cli, AFindingIsShrunkWrittenAndReproducible) {
  assay_kernel wrong = reference::kernel("reference_merge_state");
  wrong.run = first_input;
  auto run = [&](std::vector<std::string> args) {
    return program(one_kernel(wrong), std::move(args));
  };
  Ran r = run({"check", "--property", "within_budget", "--cases", "5", "--out", path("found")});
  EXPECT_EQ(r.code, kExitFinding) << r.out << r.err;
  size_t at = r.out.find("assay replay ");
  ASSERT_NE(at, std::string::npos) << r.out;
  std::string case_path = r.out.substr(at + 13, r.out.find('\n', at) - at - 13);
  ASSERT_TRUE(fs::exists(case_path));
  EXPECT_EQ(run({"replay", case_path}).code, kExitFinding);
  EXPECT_NE(run({"replay", case_path}).out.find("FAIL"), std::string::npos);
  EXPECT_EQ(run({"shrink", case_path, "--out", path("small.case")}).code, kExitFinding);
  EXPECT_TRUE(fs::exists(path("small.case")));
  Ran explained = run({"explain", case_path});
  EXPECT_EQ(explained.code, kExitFinding);
  EXPECT_NE(explained.out.find("budget: "), std::string::npos) << explained.out;
  EXPECT_NE(explained.out.find("state a"), std::string::npos) << explained.out;
  // The right kernel passes the same case.
  Ran good = assay_program({"replay", case_path});
  EXPECT_EQ(good.code, kExitPass) << good.out << good.err;
}

// The failure database: kept cases run first, on the kernels and properties they name.
TEST_F(Cli, CheckReplaysKeptFindingsFirst) {
  fs::create_directories(path("kept"));
  std::string merge = "family = merge_state\n";
  file("kept/a.case", "assay-case 1\nkernel = reference_merge_state\n"
                      "property = within_budget\n" +
                          merge + "end\n");
  file("kept/b.case", "assay-case 1\nfamily = paged\nkernel = paged_attention_v1\n"
                      "property = within_budget\nend\n");
  auto check = [&](const assay_plugin &plugin) {
    return program(plugin, {"check", "--kernel", "reference_merge_state", "--property",
                            "within_budget", "--cases", "2", "--findings", path("kept"), "--out",
                            path("found"), "--json", path("out.json")});
  };
  Ran r = check(reference::plugin());
  EXPECT_EQ(r.code, kExitPass) << r.out << r.err;
  EXPECT_EQ(
      r.out.rfind("replayed 1 findings, 0 fail (1 about other kernels or properties skipped)\n", 0),
      0u)
      << r.out;
  auto j = json("out.json")["replayed"];
  EXPECT_EQ(j["files"], 1);
  EXPECT_EQ(j["fail"], 0);
  EXPECT_EQ(j["results"][0]["verdict"], "pass");
  // The planted case fails again: a finding of the run, before anything is drawn.
  assay_kernel wrong = reference::kernel("reference_merge_state");
  wrong.run = first_input;
  r = check(one_kernel(wrong));
  EXPECT_EQ(r.code, kExitFinding) << r.out << r.err;
  EXPECT_EQ(r.out.rfind("FINDING reference_merge_state within_budget: ", 0), 0u) << r.out;
  EXPECT_NE(r.out.find("kept case: assay replay " + path("kept") + "/a.case"), std::string::npos);
  EXPECT_NE(r.out.find("replayed 1 findings, 1 fail"), std::string::npos);
  EXPECT_EQ(json("out.json")["replayed"]["fail"], 1);
  // What that run drew and shrunk was written, and the next run starts with it.
  r = check(reference::plugin());
  EXPECT_EQ(r.code, kExitPass) << r.out << r.err;
  EXPECT_NE(r.out.find("replayed 2 findings, 0 fail"), std::string::npos) << r.out;
}

TEST_F(Cli, AnUnreadableKeptFindingIsAnError) {
  fs::create_directories(path("kept"));
  file("kept/a.case", "assay-case 1\nhead_dim = many\nend\n");
  auto check = [&](const std::string &folder) {
    return assay_program({"check", "--kernel", "reference_merge_state", "--property",
                          "within_budget", "--cases", "1", "--findings", folder});
  };
  expect_error(check(path("kept")), kExitUsage, "a.case:2");
  expect_error(check(path("absent")), kExitUsage, "is not a directory");
}

TEST_F(Cli, UsageErrorsAreOneLineAndCode2) {
  expect_error(assay_program({}), kExitUsage, "");
  expect_error(assay_program({"frobnicate"}), kExitUsage, "");
  expect_error(assay_program({"check", "--kernel", "nope"}), kExitUsage, "unknown kernel 'nope'");
  expect_error(assay_program({"check", "--property", "nope"}), kExitUsage, "unknown property");
  expect_error(assay_program({"check", "--target", "tpu"}), kExitUsage, "unknown target");
  expect_error(assay_program({"check", "--cases", "-3"}), kExitUsage, "--cases");
  expect_error(assay_program({"check", "--cases", "x"}), kExitUsage, "--cases");
  expect_error(assay_program({"check", "--budget", "5 weeks"}), kExitUsage, "not a duration");
  expect_error(assay_program({"check", "--cases", "1", "--budget", "5s"}), kExitUsage, "");
  expect_error(assay_program({"check", "--kernel", "reference_v1", "--property", "merge_identity"}),
               kExitUsage, "says nothing about");
  expect_error(assay_program({"check", "--plugin", "/nonexistent.so"}), kExitUsage, "nonexistent");
  expect_error(assay_program({"replay"}), kExitUsage, "");
  // Before the work, not after it.
  const Ran unwritable = assay_program({"check", "--cases", "1", "--json", "/nonexistent/x.json"});
  expect_error(unwritable, kExitUsage, "--json /nonexistent/x.json: cannot write");
  EXPECT_EQ(unwritable.out, "");
  const std::string json = (folder_ / "refused.json").string();
  expect_error(assay_program({"check", "--kernel", "nope", "--json", json}), kExitUsage, "nope");
  EXPECT_FALSE(fs::exists(json));
  EXPECT_EQ(assay_program({"--help"}).code, kExitPass);
}

TEST_F(Cli, JsonMayGoToStandardOutput) {
  const Ran r = assay_program({"list", "--json", "-"});
  EXPECT_EQ(r.code, kExitPass);
  EXPECT_EQ(nlohmann::json::parse(r.out)["kernels"].size(), 5u);
  EXPECT_NE(r.err.find("merge_states"), std::string::npos); // what people read
}

TEST_F(Cli, APluginsKernelsTakeThePlaceOfOurs) {
  Ran r = assay_program({"check", "--plugin", ASSAY_REFERENCE_PLUGIN, "--kernel",
                         "reference_merge_states", "--property", "merge_any_tree", "--cases", "4"});
  EXPECT_EQ(r.code, kExitPass) << r.out << r.err;
  EXPECT_EQ(assay_program({"list", "kernels", "--plugin", ASSAY_REFERENCE_PLUGIN}).code, kExitPass);
  std::string text = file("text.so", "not a library");
  expect_error(assay_program({"list", "--plugin", text}), kExitUsage, "text.so");
}

// Every call of this plugin ends its process with exit(0).
TEST_F(Cli, APluginThatLeavesIsAFinding) {
  const Ran r = assay_program({"check", "--plugin", ASSAY_LEAVING_PLUGIN, "--kernel",
                               "reference_v1", "--property", "run_to_run", "--cases", "3"});
  EXPECT_EQ(r.code, kExitFinding) << r.out << r.err;
  EXPECT_NE(r.out.find("exit(0)"), r.out.npos) << r.out;
  EXPECT_NE(r.out.find("reproduce: assay replay"), r.out.npos);
}

// What this program says when something else ends it is not said for the process of a kernel.
TEST_F(Cli, AProgramWhosePluginLeavesSaysWhatHappened) {
  const process::Ended r =
      process::run({.words = {ASSAY_PROGRAM, "check", "--plugin", ASSAY_LEAVING_PLUGIN, "--kernel",
                              "reference_v1", "--property", "run_to_run", "--cases", "3", "--out",
                              path("found"), "--patience", "9s"}});
  EXPECT_EQ(r.code, kExitFinding) << r.out << r.err;
  EXPECT_NE(r.out.find("the kernel ended its process with exit(0)"), r.out.npos) << r.out;
  EXPECT_NE(r.out.find(" --patience 9s"), r.out.npos) << r.out;
  EXPECT_EQ(r.err.find("something else"), r.err.npos) << r.err;
}

TEST_F(Cli, JudgeIsThePackageOfPython) {
  fs::create_directory(path("assay"));
  file("assay/__main__.py", "import os, sys\n"
                            "def main():\n"
                            "    print(sys.argv[1:], os.environ['ASSAY_PROGRAM'])\n"
                            "    sys.exit(1)\n");
  file("assay/__init__.py", "");
  const process::Ended r = process::run({.words = {ASSAY_PROGRAM, "judge", "a b", "--like", "fa2"},
                                         .environment = {{"PYTHONPATH", path("")}}});
  EXPECT_EQ(r.code, kExitFinding) << r.err;
  EXPECT_EQ(r.out,
            "['judge', 'a b', '--like', 'fa2'] " + fs::canonical(ASSAY_PROGRAM).string() + "\n");
}

TEST_F(Cli, JudgeWithoutThePackageSaysWhoBringsIt) {
  const auto judge = [&] {
    const process::Ended r = process::run(
        {.words = {ASSAY_PROGRAM, "judge", "a.npz"}, .environment = {{"PATH", path("bin")}}});
    expect_error({r.code, r.out, r.err}, kExitUnsupported, "pip install attention_assay-*.whl");
  };
  judge(); // there is no python3
  fs::create_directory(path("bin"));
  const std::string bare = file("bin/python3", "#!/bin/sh\nexec /usr/bin/python3 -IS \"$@\"\n");
  fs::permissions(bare, fs::perms::owner_all);
  judge();
}

TEST_F(Cli, APluginThatLeavesWhenItIsLoadedIsRefused) {
  setenv("ASSAY_TEST_LEAVES_EARLY", "1", 1);
  const Ran r = assay_program({"check", "--plugin", ASSAY_LEAVING_PLUGIN});
  unsetenv("ASSAY_TEST_LEAVES_EARLY");
  EXPECT_EQ(r.code, kExitUsage) << r.out << r.err;
  EXPECT_NE(r.err.find("loading it: the kernel ended its process with exit(0)"), r.err.npos)
      << r.err;
}

TEST_F(Cli, JsonHoldsWhatWasFound) {
  const Ran r = assay_program({"check", "--plugin", ASSAY_LEAVING_PLUGIN, "--kernel",
                               "reference_v1", "--property", "run_to_run", "--cases", "3", "--json",
                               path("out.json"), "--out", path("found")});
  EXPECT_EQ(r.code, kExitFinding) << r.err;
  const nlohmann::json j = nlohmann::json::parse(std::ifstream(path("out.json")));
  EXPECT_TRUE(j["complete"]);
  ASSERT_EQ(j["found"].size(), 1u);
  ASSERT_EQ(j["groups"].size(), 1u);
  EXPECT_EQ(j["groups"][0]["properties"], nlohmann::json({"run_to_run"}));
  const nlohmann::json &f = j["found"][0];
  EXPECT_EQ(f["kernel"], "reference_v1");
  EXPECT_NE(std::string(f["message"]).find("exit(0)"), std::string::npos);
  EXPECT_EQ(f["cause"]["error"], "crash");
  EXPECT_EQ(f["group"], 0);
  EXPECT_EQ(f["fingerprint"], j["groups"][0]["fingerprint"]);
  EXPECT_TRUE(fs::exists(std::string(f["file"])));
  EXPECT_NE(std::string(f["reproduce"]).find(std::string(f["file"])), std::string::npos);
  ASSERT_EQ(j["runs"].size(), 1u);
  EXPECT_GE(j["runs"][0]["findings"], 3);
}

// Whoever reads the file of a run that was killed must not take it for a report.
TEST_F(Cli, JsonOfAnUnfinishedRunSaysSo) {
  assay_kernel dies = reference::kernel("reference_v1");
  dies.run = [](const void *) -> assay_status { _exit(0); };
  const pid_t child = fork();
  ASSERT_GE(child, 0);
  if (child == 0) {
    program(one_kernel(dies), {"check", "--property", "run_to_run", "--cases", "1", "--threads",
                               "1", "--json", path("out.json")});
    _exit(9); // not reached: the kernel, not isolated, leaves first
  }
  int status = 0;
  waitpid(child, &status, 0);
  EXPECT_TRUE(WIFEXITED(status) && WEXITSTATUS(status) == 0);
  const nlohmann::json j = nlohmann::json::parse(std::ifstream(path("out.json")));
  EXPECT_FALSE(j["complete"]);
  EXPECT_EQ(j["exit"], kExitHarness);
}

TEST_F(Cli, WhatIsNoRegularFileIsNotRead) {
  expect_error(assay_program({"replay", "/dev/zero"}), kExitUsage, "no regular file");
}

TEST_F(Cli, AMissingTargetIsCode3) {
  expect_error(assay_program({"check", "--target", "cuda"}), kExitUnsupported, "cuda");
}

TEST_F(Cli, HostileCasesAreOneLineAndCode2) {
  auto replay = [&](const std::string &text) {
    return assay_program({"replay", file("bad.case", text)});
  };
  expect_error(assay_program({"replay", path("absent.case")}), kExitUsage, "cannot read");
  expect_error(assay_program({"replay", folder_.string()}), kExitUsage, "directory");
  expect_error(replay(""), kExitUsage, "expected 'assay-case 1'");
  expect_error(replay(std::string("\0\xff\x7f binary", 10)), kExitUsage, "bad.case:1");
  expect_error(replay("assay-case 1\nseq_lens = -7\nend\n"), kExitUsage,
               "bad.case:2: seq_lens: -7 is outside 0 .. 262144");
  expect_error(replay("assay-case 1\npage_size = 4\nseq_lens = 8\nplacement = explicit\n"
                      "page_ids = 0, 7\nend\n"),
               kExitUsage, "page 7 is outside the pool of 2 pages");
  expect_error(replay("assay-case 1\nfamily = paged\nkernel = nope\nend\n"), kExitUsage,
               "unknown kernel 'nope'");
  expect_error(replay("assay-case 1\nfamily = paged\nproperty = nope\nend\n"), kExitUsage,
               "unknown property 'nope'");
  expect_error(replay("assay-case 1\nfamily = paged\nkernel = reference_merge_state\nend\n"),
               kExitUsage, "does not fit kernel");
  expect_error(replay("assay-case 1\nseq_lens = 7\n"), kExitUsage, "cut short");
  expect_error(replay("assay-case 1\nhead_dim"), kExitUsage, "expected 'field = value'");
  expect_error(replay("assay-case 1\nseq_lens = 1" + std::string(1 << 20, '0') + "\n"), kExitUsage,
               "bytes, the limit is");
}

TEST_F(Cli, ReplayRunsEveryPropertyOfACaseWithoutOne) {
  Ran r = assay_program(
      {"replay", file("a.case", "assay-case 1\nfamily = paged\nkernel = reference_v1\n"
                                "batch = 2\nseq_lens = 3, 0\nend\n")});
  EXPECT_EQ(r.code, kExitPass) << r.out << r.err;
  EXPECT_NE(r.out.find("within_budget"), std::string::npos);
  EXPECT_NE(r.out.find("n/a"), std::string::npos); // head_permutation with one head
}

TEST_F(Cli, ExplainShowsTheKeysThatMatter) {
  Ran r = assay_program(
      {"explain", file("a.case", "assay-case 1\nfamily = paged\nkernel = reference_v1\n"
                                 "property = within_budget\nseq_lens = 9\n"
                                 "q.regime = normal\nk.regime = normal\nend\n")});
  EXPECT_EQ(r.code, kExitPass) << r.err;
  EXPECT_NE(r.out.find("largest weights of row 0 head 0"), std::string::npos) << r.out;
  EXPECT_NE(r.out.find("and 4 more"), std::string::npos) << r.out;
  EXPECT_NE(r.out.find("classes: "), std::string::npos);
}

TEST_F(Cli, MutantsPrintsTheMatrixAndWritesIt) {
  Ran ran =
      assay_program({"mutants", "--kernel", "merge_state", "--runs", "3", "--json", path("m")});
  EXPECT_EQ(ran.code, kExitPass) << ran.out << ran.err;
  EXPECT_NE(ran.out.find("(correct)"), std::string::npos);
  EXPECT_NE(ran.out.find("all mutants"), std::string::npos);
  nlohmann::json document = json("m");
  ASSERT_GE(document["rows"].size(), 3u);
  EXPECT_EQ(document["rows"][0]["mutant"], "");
  EXPECT_EQ(document["rows"][0]["killed"]["all"], 0);
  EXPECT_TRUE(document["rows"][0]["killed"]["T1"].is_null()); // merges have no T1
  EXPECT_EQ(document["rows"][1]["killed"]["all"], 3);
}

TEST_F(Cli, MutantsRefusesAnUnknownKernel) {
  EXPECT_EQ(assay_program({"mutants", "--kernel", "nope"}).code, kExitUsage);
}

} // namespace
} // namespace assay
