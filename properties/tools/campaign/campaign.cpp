// SPDX-License-Identifier: Apache-2.0
#include "properties/tools/campaign/campaign.h"

#include <algorithm>
#include <chrono>
#include <ctime>
#include <filesystem>
#include <map>
#include <mutex>
#include <optional>
#include <thread>

#include <fmt/format.h>

#include "properties/tools/campaign/error.h"
#include "properties/tools/campaign/journal.h"
#include "properties/tools/campaign/page.h"
#include "properties/tools/campaign/slice.h"

namespace assay::campaign {
namespace {

using nlohmann::json;
using Clock = std::chrono::steady_clock;

double since(Clock::time_point start) {
  return std::chrono::duration<double>(Clock::now() - start).count();
}

/// A target whose slices end with one finding so often in a row finds nothing else: it waits for a
/// person.
constexpr int kMaxFailing = 3;
/// The draws of the properties are what a merge gate runs: they get so many times a target's share.
constexpr double kCheckWeight = 2;
/// A slice shorter than this is not worth its start.
constexpr double kMinSeconds = 1;

/// What runs in which slot, and what is next. All calls under one lock.
class Slots {
public:
  Slots(const Options &options, const Progress &progress, const std::atomic<bool> &stop,
        Journal &journal)
      : options_(options), progress_(progress), stop_(stop), journal_(journal),
        totals_(add_up(journal.lines())) {
    tasks_ = fuzz_targets(options.fuzzers);
    if (!options.only.empty()) {
      if (std::find(tasks_.begin(), tasks_.end(), options.only) == tasks_.end())
        throw CampaignError(2, fmt::format("{}: no such fuzz target in {}", options.only,
                                           fmt::join(options.fuzzers, ", ")));
      tasks_ = {options.only};
      return;
    }
    tasks_.insert(tasks_.begin(), kCheck);
  }

  const std::vector<std::string> &tasks() const { return tasks_; }

  void run(double seconds) {
    start_ = Clock::now();
    end_ = seconds;
    std::vector<std::thread> threads;
    const int jobs = std::min(options_.jobs, static_cast<int>(tasks_.size()));
    int working = jobs;
    for (int i = 0; i < jobs; ++i)
      threads.emplace_back([this, &working] {
        work();
        const std::lock_guard lock(mutex_);
        --working;
      });
    for (bool more = true; more;) {
      std::this_thread::sleep_for(std::chrono::milliseconds(200));
      const std::lock_guard lock(mutex_);
      more = working > 0;
      std::vector<Running> running;
      for (const auto &[task, began] : running_)
        running.push_back({task, since(began)});
      if (progress_.status) progress_.status(totals_, running, since(start_));
    }
    for (std::thread &thread : threads)
      thread.join();
    if (error_) throw *error_;
  }

private:
  struct Slice {
    std::string task;
    int number;
    uint64_t seed;
    double seconds;
  };

  /// The task that has had the least time for its weight, of those that nobody works on.
  std::optional<Slice> next() {
    const std::lock_guard lock(mutex_);
    const double left = end_ - since(start_);
    if (stop_ || error_ || left < kMinSeconds) return std::nullopt;
    std::string best;
    double least = 0;
    for (const std::string &task : tasks_) {
      const TaskTotals &t = totals_.tasks[task];
      if (running_.count(task) != 0 || t.failing >= kMaxFailing) continue;
      const double had = t.seconds / (task == kCheck ? kCheckWeight : 1);
      if (best.empty() || had < least) best = task, least = had;
    }
    if (best.empty()) return std::nullopt;
    running_[best] = Clock::now();
    const int number = totals_.tasks[best].slices;
    const Slice slice{best, number, options_.seed + static_cast<uint64_t>(number),
                      std::min(options_.slice, left)};
    note({{"begin", slice.task},
          {"slice", number},
          {"seed", slice.seed},
          {"at", static_cast<int64_t>(std::time(nullptr))}});
    return slice;
  }

  void work() {
    try {
      while (const std::optional<Slice> slice = next()) {
        json line = run_slice(options_, slice->task, slice->number, slice->seed, slice->seconds,
                              std::max(kMinSeconds, end_ - since(start_)), stop_);
        line["end"] = slice->task;
        line["slice"] = slice->number;
        const std::lock_guard lock(mutex_);
        running_.erase(slice->task);
        say_findings(slice->task, line);
        note(line);
        if (totals_.tasks[slice->task].failing == kMaxFailing && progress_.say)
          progress_.say(fmt::format("{} ended {} times with this finding and is left alone",
                                    slice->task, kMaxFailing));
      }
    } catch (const std::exception &e) {
      const std::lock_guard lock(mutex_);
      const auto *known = dynamic_cast<const CampaignError *>(&e);
      if (!error_) error_ = known != nullptr ? *known : CampaignError(4, e.what());
    }
  }

  void say_findings(const std::string &task, const json &line) {
    if (!progress_.say) return;
    for (const json &finding : line.value("findings", json::array()))
      if (totals_.findings.count(finding.value("key", "")) == 0)
        progress_.say(fmt::format("FINDING {}: {}\n  {}", task, finding.value("message", ""),
                                  finding.value("folder", "")));
    if (line.contains("trouble"))
      progress_.say(fmt::format("{}: {}", task, line.value("trouble", "")));
  }

  void note(const json &line) {
    journal_.append(line);
    totals_ = add_up(journal_.lines());
  }

  const Options &options_;
  const Progress &progress_;
  const std::atomic<bool> &stop_;
  Journal &journal_;
  std::mutex mutex_;
  std::vector<std::string> tasks_;
  Totals totals_;
  std::map<std::string, Clock::time_point> running_;
  std::optional<CampaignError> error_;
  Clock::time_point start_;
  double end_ = 0;
};

void prune(const Options &options, const std::vector<std::string> &tasks,
           const Progress &progress) {
  for (const std::string &task : tasks) {
    if (task == kCheck) continue;
    const auto [before, after] = prune_corpus(options, task);
    if (after < before && progress.say)
      progress.say(fmt::format("{}: {} of {} inputs kept", task, after, before));
  }
}

} // namespace

json run_campaign(const Options &options, const Progress &progress, const std::atomic<bool> &stop) {
  Journal journal(options.dir);
  Slots slots(options, progress, stop, journal);
  for (const std::string &task : slots.tasks())
    if (task != kCheck) repair_corpus(options, task);
  journal.append({{"session", options.version},
                  {"seconds", options.seconds},
                  {"at", static_cast<int64_t>(std::time(nullptr))}});
  slots.run(options.seconds);
  if (!stop) prune(options, slots.tasks(), progress);
  const json document = report_of(options, slots.tasks(), add_up(journal.lines()));
  write_report(options.dir, document);
  return document;
}

} // namespace assay::campaign
