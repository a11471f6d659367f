// SPDX-License-Identifier: Apache-2.0
// A campaign over programs that stand in for fuzzers and for assay: small scripts that say what
// those say.
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <csignal>
#include <set>
#include <thread>

#include "properties/tests/own_folder.h"
#include "properties/tools/campaign/campaign.h"
#include "properties/tools/campaign/error.h"
#include "properties/tools/campaign/fuzz_log.h"
#include "properties/tools/campaign/journal.h"
#include "properties/tools/campaign/page.h"
#include "properties/tools/campaign/slice.h"

namespace assay::campaign {
namespace {

using nlohmann::json;

/// Writes an input into the first folder it is given, as a fuzzer does, and counts.
constexpr const char *kFuzzer = R"sh(#!/bin/sh
for word in "$@"; do
  case $word in
  -merge=1) merge=1 ;;
  -runs=0) exit 0 ;;
  -*) ;;
  *) [ -n "$corpus" ] || corpus=$word ;;
  esac
done
if [ -n "$merge" ]; then
  for word in "$@"; do last=$word; done
  cp "$last"/$(ls "$last" | head -n 1) "$corpus"
  exit 0
fi
echo input > "$corpus/$$"
sleep 0.05
printf '#8\tNEW cov: 12 ft: 34 corp: 5/6b\nstat::number_of_executed_units: 100\n' >&2
)sh";

constexpr const char *kCrashing = R"sh(#!/bin/sh
for word in "$@"; do
  case $word in -artifact_prefix=*) prefix=${word#*=} ;; esac
done
echo bytes > "${prefix}crash-1"
echo "VIOLATION: row $$ is wrong" >&2
printf 'assay-case 1\nfamily = paged\nend\n' >&2
echo "Test unit written to ${prefix}crash-1" >&2
exit 77
)sh";

constexpr const char *kAssay = R"sh(#!/bin/sh
seed= report=
while [ $# -gt 0 ]; do
  case $1 in --seed) seed=$2 ;; --json) report=$2 ;; esac
  shift
done
echo '{"complete":true,"cases":50,"groups":[],"runs":[{"kernel":"k","property":"p","classes":{"c'$((seed % 7))'":2}}]}' > "$report"
)sh";

class Campaign : public InOwnFolder {
protected:
  void SetUp() override {
    InOwnFolder::SetUp();
    fs::create_directories(folder_ / "fuzzers");
    options_.program = script("assay", kAssay);
    options_.dir = (folder_ / "dir").string();
    options_.fuzzers = {(folder_ / "fuzzers").string()};
    options_.seconds = 2;
    options_.slice = 1;
    options_.jobs = 2;
  }

  json run() {
    const std::atomic<bool> never{false};
    return run_campaign(
        options_,
        {.status = nullptr, .say = [this](const std::string &line) { said_ += line + "\n"; }},
        never);
  }
  std::string page_text() const { return read_text(folder_ / "dir/report.html"); }
  static json task(const json &report, const std::string &name) {
    for (const json &t : report.at("tasks"))
      if (t.at("name") == name) return t;
    return {};
  }

  Options options_;
  std::string said_;
};

TEST_F(Campaign, RunsEveryTaskAndWritesAReport) {
  script("fuzzers/fuzz_a", kFuzzer);
  script("fuzzers/fuzz_b", kFuzzer);
  script("fuzzers/fuzz_control_test", kFuzzer); // no target
  const json report = run();
  EXPECT_EQ(report.at("exit"), 0) << said_;
  EXPECT_EQ(report.at("tasks").size(), 3u);
  for (const char *name : {"check", "fuzz_a", "fuzz_b"}) {
    EXPECT_GT(task(report, name).at("slices"), 1) << name;
    EXPECT_EQ(task(report, name).at("lost"), 0) << name;
    EXPECT_GT(task(report, name).at("executions"), 49) << name;
  }
  EXPECT_EQ(task(report, "fuzz_a").at("features"), 34);
  // The report names the kernels and the seeds.
  EXPECT_EQ(report.at("kernels"), json({"k"}));
  const json check = task(report, "check");
  EXPECT_GE(check.at("first_seed").get<uint64_t>(), options_.seed);
  EXPECT_GT(check.at("last_seed"), check.at("first_seed"));
  EXPECT_EQ(json::parse(std::ifstream(folder_ / "dir/report.json")), report);
  const std::string html = page_text();
  EXPECT_NE(html.find("nothing found"), html.npos);
  EXPECT_NE(html.find("<polyline"), html.npos);
  EXPECT_NE(html.find("check drew cases for assay's own kernels with seeds from "), html.npos);
  EXPECT_NE(html.find(": k. Fuzz targets, of assay's own code: fuzz_a, fuzz_b."), html.npos);
  // Pruned: the stand-in keeps one.
  EXPECT_EQ(std::distance(fs::directory_iterator(folder_ / "dir/corpus/fuzz_a"),
                          fs::directory_iterator{}),
            1);
}

// The page of a plugin's campaign tells what it is for.
TEST_F(Campaign, OfAPluginNamesItAndDrawsAlone) {
  options_.fuzzers.clear();
  options_.library = "/somewhere/mine.so";
  const json report = run();
  EXPECT_EQ(report.at("library"), "/somewhere/mine.so");
  const std::string html = page_text();
  EXPECT_NE(html.find("check drew cases for kernels of /somewhere/mine.so with seeds"), html.npos);
  EXPECT_NE(html.find("what a campaign of a plugin is for"), html.npos);
}

// A night that draws seed 1 again finds what the last one did.
TEST_F(Campaign, SeedsAreNewInEverySliceAndSession) {
  run();
  run();
  std::set<uint64_t> seeds;
  int slices = 0;
  for (const json &line : Journal(options_.dir).lines())
    if (line.value("begin", "") == "check") {
      seeds.insert(line.at("seed").get<uint64_t>());
      ++slices;
    }
  EXPECT_GT(slices, 3);
  EXPECT_EQ(seeds.size(), static_cast<size_t>(slices));
}

TEST_F(Campaign, AFindingIsKeptOnceWithWhatReproducesIt) {
  script("fuzzers/fuzz_bad", kCrashing);
  const json report = run();
  EXPECT_EQ(report.at("exit"), 1);
  ASSERT_EQ(report.at("findings").size(), 1u) << "messages that differ in numbers alone are one";
  const json finding = report.at("findings")[0];
  EXPECT_EQ(finding.at("times"), 3) << "then it is left alone";
  EXPECT_TRUE(task(report, "fuzz_bad").at("left_alone"));
  const fs::path folder = finding.at("folder").get<std::string>();
  for (const char *name : {"input", "issue.md", "output.txt"})
    EXPECT_TRUE(fs::exists(folder / name)) << name;
  EXPECT_TRUE(fs::exists(folder / (finding.at("key").get<std::string>() + ".case")));
  EXPECT_NE(said_.find("FINDING fuzz_bad: VIOLATION: row"), said_.npos) << said_;
}

TEST_F(Campaign, ATaskThatDoesNoWorkIsNoPass) {
  script("fuzzers/fuzz_idle", "#!/bin/sh\necho none here >&2\nexit 3\n");
  const json report = run();
  EXPECT_EQ(report.at("exit"), 4);
  EXPECT_EQ(task(report, "fuzz_idle").at("trouble"), "exit code 3: none here");
}

TEST_F(Campaign, OneAtATimeInAFolder) {
  const Journal first(options_.dir);
  EXPECT_THROW(run(), CampaignError);
}

TEST_F(Campaign, ACutLineIsCutOffAndANonsenseLineIsAnError) {
  { Journal(options_.dir).append({{"begin", "check"}}); }
  const std::string path = options_.dir + "/journal.jsonl";
  std::ofstream(path, std::ios::app) << "{\"end\": \"che";
  EXPECT_EQ(Journal(options_.dir).lines().size(), 1u);
  { Journal(options_.dir).append({{"begin", "check"}}); }
  EXPECT_EQ(Journal(options_.dir).lines().size(), 2u);
  std::ofstream(path, std::ios::app) << "nonsense\n";
  EXPECT_THROW(Journal{options_.dir}, CampaignError);
}

TEST_F(Campaign, AnInterruptedExchangeOfACorpusIsPutRight) {
  const fs::path corpus = folder_ / "dir/corpus/fuzz_a";
  fs::create_directories(corpus.string() + ".old");
  std::ofstream(corpus.string() + ".old/one") << "x";
  fs::create_directories(corpus.string() + ".pruned");
  repair_corpus(options_, "fuzz_a");
  EXPECT_TRUE(fs::exists(corpus / "one"));
  EXPECT_FALSE(fs::exists(corpus.string() + ".pruned"));
}

/// Counts the lines of a journal that another process writes.
static size_t lines_in(const fs::path &journal) {
  const std::string text = read_text(journal);
  return static_cast<size_t>(std::count(text.begin(), text.end(), '\n'));
}

/// Counts the inputs of a corpus; a session that is killed early has made no folder for them.
static size_t inputs_in(const fs::path &corpus) {
  if (!fs::exists(corpus)) return 0;
  const auto entries = fs::directory_iterator(corpus);
  return static_cast<size_t>(std::distance(fs::begin(entries), fs::end(entries)));
}

// Killed at any moment: inputs stay, every line stays, seeds do not come back.
TEST_F(Campaign, NothingIsLostWhenItIsKilled) {
  script("fuzzers/fuzz_a", kFuzzer);
  options_.seconds = 60;
  size_t lines = 0, inputs = 0;
  for (int kill_number = 0; kill_number < 8; ++kill_number) {
    const pid_t pid = fork();
    if (pid == 0) {
      run();
      _exit(0);
    }
    // The first line begins the session, the next ones begin slices. The file is counted by hand:
    // a Journal has one process at a time.
    const size_t before_kill = lines + static_cast<size_t>(kill_number % 3);
    while (lines_in(folder_ / "dir/journal.jsonl") <= before_kill)
      std::this_thread::sleep_for(std::chrono::milliseconds(10));
    std::this_thread::sleep_for(std::chrono::milliseconds(37 * kill_number)); // any moment
    kill(pid, SIGKILL);
    int status = 0;
    waitpid(pid, &status, 0);
    std::this_thread::sleep_for(std::chrono::milliseconds(100)); // what it had started ends with it
    const size_t now = Journal(options_.dir).lines().size();
    const size_t files = inputs_in(folder_ / "dir/corpus/fuzz_a");
    EXPECT_GT(now, lines) << kill_number;
    EXPECT_GE(files, inputs) << kill_number;
    lines = now;
    inputs = files;
  }
  const Totals totals = add_up(Journal(options_.dir).lines());
  EXPECT_EQ(totals.sessions, 8);
  EXPECT_GT(totals.tasks.at("fuzz_a").lost, 0);
  options_.seconds = 1;
  EXPECT_EQ(run().at("sessions"), 9);
}

} // namespace
} // namespace assay::campaign
