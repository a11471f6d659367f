// SPDX-License-Identifier: Apache-2.0
// campaign: hours of fuzzing and ever new draws. fuzz: one target of it.
#include "properties/tools/campaign/campaign.h"

#include <algorithm>
#include <filesystem>
#include <ostream>
#include <thread>

#include <fmt/chrono.h>
#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "properties/cli/commands/commands.h"
#include "properties/cli/session/interrupt.h"
#include "properties/cli/session/own_program.h"
#include "properties/run/processors.h"
#include "properties/tools/campaign/error.h"
#include "properties/tools/campaign/slice.h"

namespace assay {
namespace {

namespace fs = std::filesystem;

/// Where the presets fuzz and simt-asan-ubsan put them: the fast build explores, sanitizers look
/// again.
constexpr const char *kFuzzerFolders[] = {"build/fuzz/fuzz", "build/simt-asan-ubsan/fuzz"};

std::vector<std::string> fuzzer_folders(const CampaignOptions &o, bool ours) {
  std::vector<std::string> out;
  for (const std::string &folder : o.fuzzers) {
    if (campaign::fuzz_targets({folder}).empty())
      throw CliError(kExitUsage, fmt::format("--fuzzers {}: no fuzz_* program there", folder));
    out.push_back(fs::absolute(folder).string());
  }
  // Targets are about our kernels: a campaign on others draws.
  if (out.empty() && ours)
    for (const char *folder : kFuzzerFolders)
      if (!campaign::fuzz_targets({folder}).empty()) out.push_back(fs::absolute(folder).string());
  return out;
}

campaign::Options options_of(const Session &session, const CampaignOptions &o) {
  const std::string &plugin = session.options.plugin;
  campaign::Options out;
  out.program = own_program();
  out.version = ASSAY_VERSION;
  out.dir = fs::absolute(o.dir.empty() ? "campaign" : o.dir).lexically_normal().string();
  out.fuzzers = fuzzer_folders(o, plugin.empty());
  out.seeds = fs::absolute("corpus/seeds").string();
  if (!plugin.empty()) {
    out.library = fs::absolute(plugin).string();
    out.source = {"--plugin", out.library};
  }
  if (o.budget > 0) out.seconds = o.budget;
  if (o.hours > 0) out.seconds = o.hours * 3600;
  if (o.slice > 0) out.slice = o.slice;
  out.jobs = o.jobs > 0 ? o.jobs : usable_processors();
  out.seed = session.options.seed;
  return out;
}

std::string clock_text(double seconds) {
  const auto s = static_cast<int64_t>(seconds);
  return fmt::format("{:02}:{:02}:{:02}", s / 3600, s / 60 % 60, s % 60);
}

/// 12, 3.4k, 56M
std::string short_count(uint64_t n) {
  constexpr const char *kUnits[] = {"", "k", "M", "G"};
  double x = static_cast<double>(n);
  int unit = 0;
  for (; x >= 1000 && unit < 3; ++unit)
    x /= 1000;
  return unit == 0 ? std::to_string(n) : fmt::format("{:.3g}{}", x, kUnits[unit]);
}

std::string task_line(const std::string &name, const campaign::TaskTotals &t, double running) {
  return fmt::format("  {:<14} {:>9} {:>10} {:>8} {:>8}  {}", name, clock_text(t.seconds),
                     short_count(t.executions), t.features,
                     fmt::format("+{:.1f} %", 100 * t.still_growing()),
                     running >= 0 ? fmt::format("running {:.0f} s", running) : "");
}

/// On a terminal a line a task, drawn again and again; otherwise a line a minute.
class StatusLines {
public:
  StatusLines(const Session &session, double total) : session_(session), total_(total) {}

  void show(const campaign::Totals &totals, const std::vector<campaign::Running> &running,
            double elapsed) {
    const bool live = session_.streams.terminal;
    if (session_.options.quiet || elapsed < next_) return;
    next_ = elapsed + (live ? 1 : 60);
    if (live)
      draw(totals, running, elapsed);
    else
      session_.streams.out << summary(totals, elapsed) << std::endl;
  }

  void say(const std::string &line) {
    clear();
    session_.streams.out << line << std::endl;
  }

  void clear() {
    if (lines_ > 0) session_.streams.out << fmt::format("\033[{}A\033[J", lines_);
    lines_ = 0;
  }

private:
  std::string summary(const campaign::Totals &totals, double elapsed) const {
    std::string out = fmt::format("{} of {}", clock_text(elapsed), clock_text(total_));
    for (const auto &[name, t] : totals.tasks)
      out += fmt::format("  {} {}/{}", name, short_count(t.executions), t.features);
    return out + fmt::format("  findings {}", totals.findings.size());
  }

  void draw(const campaign::Totals &totals, const std::vector<campaign::Running> &running,
            double elapsed) {
    clear();
    std::ostream &out = session_.streams.out;
    out << fmt::format("{} of {}, {} findings\n  {:<14} {:>9} {:>10} {:>8} {:>8}\n",
                       clock_text(elapsed), clock_text(total_), totals.findings.size(), "task",
                       "time", "inputs", "features", "lately");
    lines_ = 2;
    for (const auto &task : totals.tasks) {
      double seconds = -1;
      for (const campaign::Running &r : running)
        if (r.task == task.first) seconds = r.seconds;
      out << task_line(task.first, task.second, seconds) << "\n";
      ++lines_;
    }
    out << std::flush;
  }

  const Session &session_;
  double total_, next_ = 0;
  int lines_ = 0;
};

int run(Session &session, const campaign::Options &options) {
  session.begin({{"complete", false}, {"dir", options.dir}, {"exit", kExitHarness}});
  StopOnSignal stop;
  StatusLines lines(session, options.seconds);
  nlohmann::json document;
  try {
    document = campaign::run_campaign(
        options,
        {.status = [&](const auto &totals, const auto &running,
                       double elapsed) { lines.show(totals, running, elapsed); },
         .say = [&](const std::string &line) { lines.say(line); }},
        stop.flag());
  } catch (const campaign::CampaignError &e) {
    lines.clear();
    throw CliError(static_cast<ExitCode>(e.code), e.what());
  }
  lines.clear();
  std::ostream &out = session.streams.out;
  if (!session.options.quiet) {
    out << fmt::format("  {:<14} {:>9} {:>10} {:>8} {:>8}\n", "task", "time", "inputs", "features",
                       "lately");
    const campaign::Totals totals = campaign::totals_of(document);
    for (const auto &[name, t] : totals.tasks)
      out << task_line(name, t, -1) << "\n";
  }
  const int exit = document.at("exit").get<int>();
  const std::string word = exit == kExitPass      ? session.green("nothing found")
                           : exit == kExitFinding ? session.red("findings")
                                                  : session.red("incomplete");
  out << fmt::format("{}: findings {}, sessions {}, report {}/report.html\n", word,
                     document.at("findings").size(), document.at("sessions").get<int>(),
                     options.dir);
  return session.finish(document, exit);
}

} // namespace

int command_campaign(Session &session, const CampaignOptions &asked) {
  const campaign::Options options = options_of(session, asked);
  // Where our tree is not, somebody may expect to have their own checked.
  if (options.library.empty() && !fs::exists(options.seeds) && !session.options.quiet)
    session.streams.out << "assay's own kernels; --plugin LIB draws for those of a library\n";
  return run(session, options);
}

int command_fuzz(Session &session, const CampaignOptions &asked) {
  campaign::Options options = options_of(session, asked);
  options.only = asked.only;
  if (options.only.rfind("fuzz_", 0) != 0) options.only = "fuzz_" + options.only;
  if (asked.dir.empty()) options.dir = fs::absolute("campaign-" + options.only).string();
  if (!(asked.budget > 0)) options.seconds = 60;
  options.jobs = 1;
  return run(session, options);
}

} // namespace assay
