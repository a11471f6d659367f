// SPDX-License-Identifier: Apache-2.0
// Programs that gate and campaign run: what they say, how they end, and that they do.
#include <chrono>
#include <filesystem>

#include <gtest/gtest.h>

#include "properties/tools/process/process.h"

namespace assay::process {
namespace {

Command shell(const std::string &text) {
  Command command;
  command.words = {"sh", "-c", text};
  return command;
}

TEST(Process, SaysWhatItSaidAndHowItEnded) {
  const Ended ended = run(shell("echo out; echo err >&2; exit 3"));
  EXPECT_EQ(ended.code, 3);
  EXPECT_EQ(ended.out, "out\n");
  EXPECT_EQ(ended.err, "err\n");
  EXPECT_EQ(run(shell("kill -9 $$")).code, 128 + 9);
  EXPECT_EQ(run(shell("cat")).out, ""); // standard input is empty
  EXPECT_EQ(run(shell("head -c 300000 /dev/zero | tr '\\0' a")).out.size(), 300000u);
}

TEST(Process, HasItsFolderAndItsEnvironment) {
  Command command = shell("pwd; echo $ASSAY_GATE_TEST");
  command.folder = "/";
  command.environment = {{"ASSAY_GATE_TEST", "x"}};
  EXPECT_EQ(run(command).out, "/\nx\n");
  command.words = {"/nowhere/program"};
  EXPECT_THROW(run(command), ProcessError);
}

TEST(Process, MayReportWhenItsTimeIsOver) {
  Command command = shell("trap 'echo report; exit 1' TERM; while :; do sleep 0.05; done");
  command.seconds = 0.3;
  const Ended ended = run(command);
  EXPECT_EQ(ended.code, 124);
  EXPECT_EQ(ended.out, "report\n");
}

TEST(Process, MayReportWhenItIsStopped) {
  std::atomic<bool> stop{false};
  Command command = shell("trap 'echo report; exit 1' TERM; while :; do sleep 0.05; done");
  command.stop = &stop;
  command.waiting = [&](double seconds) { stop = seconds > 0.3; };
  const Ended ended = run(command);
  EXPECT_EQ(ended.code, 124);
  EXPECT_EQ(ended.out, "report\n");
}

TEST(Process, LastLine) {
  EXPECT_EQ(last_line("a\nb\n\n"), "b");
  EXPECT_EQ(last_line(" \n"), "");
  EXPECT_EQ(last_line(std::string(1000, 'a')).size(), 300u);
}

} // namespace
} // namespace assay::process
