// SPDX-License-Identifier: Apache-2.0
// `assay replay --explore`: mistakes that a case's own schedule does not show.
#include <string>
#include <vector>

#include "kernels/simt/tests/explored_kernels.h"
#include "properties/case/case_text.h"
#include "properties/case/problem_gen.h"
#include "properties/tests/cli_fixture.h"

namespace assay {
namespace {

/// What threads do in front of the merge of the kernel below.
struct Meeting {
  const simt::explored::Kernel *kernel;
  bool right;
};
Meeting meeting;

/// A right merge behind a launch of such threads.
assay_status meet_and_merge(const void *params) {
  auto *stream =
      static_cast<simt::Stream *>(static_cast<const assay_merge_state_params *>(params)->stream);
  constexpr size_t kBytes = 4 * simt::explored::kWords;
  auto *words = static_cast<uint32_t *>(stream->memory.allocate(
      kBytes, simt::Access::kReadWrite, simt::InitState::kDefined, "words"));
  std::memset(words, 0, kBytes);
  const simt::LaunchConfig config =
      simt::block_of(meeting.kernel->threads, 256, meeting.kernel->blocks);
  const auto body = [&] { meeting.kernel->body(words, meeting.right); };
  if (simt::launch(stream, config, body) != simt::LaunchStatus::kOk) return ASSAY_HAZARD;
  return reference::kernel("reference_merge_state").run(params);
}

class Explore : public Cli {
protected:
  void SetUp() override {
    Cli::SetUp();
    kernel_.run = meet_and_merge;
    case_.problem = draw_problem(fuzz_limits(), Family::kMergeState, 1);
    case_.problem.schedule = {.seed = 8};
    file("a.case", format_case(case_));
  }
  void meet(const std::string &name, bool right) {
    for (const simt::explored::Kernel &kernel : simt::explored::kKernels)
      if (name == kernel.name) meeting = {&kernel, right};
  }
  Ran replay(std::vector<std::string> more, const char *property = "within_budget") {
    more.insert(more.begin(),
                {"replay", path("a.case"), "--property", property, "--json", path("r.json")});
    return program(one_kernel(kernel_), more);
  }
  nlohmann::json explored() const { return json("r.json")["results"][0]["explored"]; }
  static void expect_text(const Ran &r, const std::string &text) {
    EXPECT_NE(r.out.find(text), std::string::npos) << r.out;
  }
  assay_kernel kernel_ = reference::kernel("reference_merge_state");
  Case case_;
};

TEST_F(Explore, ASeedShowsWhatTheCasesScheduleDoesNot) {
  meet("deadlock_in_one_order", false);
  EXPECT_EQ(replay({}).code, kExitPass);
  const Ran r = replay({"--explore", "60"});
  EXPECT_EQ(r.code, kExitFinding) << r.out << r.err;
  expect_text(r, "deadlock");
  const nlohmann::json found = explored();
  const std::string number = found["failed"].dump(), seed = found["seed"].dump();
  expect_text(r, "fails on seeded schedule " + number);
  expect_text(r, "schedule.seed " + seed + "\n");
  expect_text(r, "reproduce: assay replay " + path("a.case") +
                     " --kernel reference_merge_state --property within_budget --explore " +
                     number + "\n");
  EXPECT_EQ(replay({"--explore", number}).code, kExitFinding);
  // The case with that schedule shows it by itself.
  case_.problem.schedule = {BlockOrder::kSeeded, CopyTiming::kSeeded,
                            static_cast<uint32_t>(std::stoul(seed))};
  file("a.case", format_case(case_));
  EXPECT_EQ(replay({}).code, kExitFinding);
}

TEST_F(Explore, AnOrderOfOperationsShowsWhatSeedsDoNot) {
  meet("lost_wakeup", false);
  EXPECT_EQ(replay({}, "schedule_independence").code, kExitPass);
  const Ran r = replay({"--explore", "60"});
  EXPECT_EQ(r.code, kExitFinding) << r.out << r.err;
  expect_text(r, "passes on 60 seeded schedules, fails on order 3 of its operations\n");
  EXPECT_EQ(explored()["failed"], 3);
  EXPECT_EQ(replay({"--explore", "3"}).code, kExitFinding);
  EXPECT_EQ(replay({"--explore", "2"}).code, kExitPass);
}

TEST_F(Explore, SaysWhetherAllOrdersRan) {
  meet("deadlock_in_one_order", true);
  Ran r = replay({"--explore", "60"});
  EXPECT_EQ(r.code, kExitPass) << r.out << r.err;
  expect_text(r, "passes on 60 seeded schedules; all 6 orders of its operations\n");
  EXPECT_EQ(explored()["orders"], nlohmann::json({{"runs", 6}, {"complete", true}, {"left", 0}}));
  r = replay({"--explore", "5"});
  expect_text(r, "4 orders of its operations; at least 1 more did not run\n");
  r = replay(
      {"--plugin", ASSAY_REFERENCE_PLUGIN, "--kernel", "reference_merge_state", "--explore", "2"});
  expect_text(r, "passes on 2 seeded schedules; orders are not explored in a process of its own\n");
}

} // namespace
} // namespace assay
