// SPDX-License-Identifier: Apache-2.0
#include "properties/tools/campaign/totals.h"

#include <algorithm>

#include <nlohmann/json.hpp>

namespace assay::campaign {
namespace {

using nlohmann::json;

template <class T>
T field(const json &line, const char *name) {
  const auto at = line.find(name);
  if (at == line.end()) return T{};
  try {
    return at->get<T>();
  } catch (const json::exception &) {
    return T{}; // a line that somebody has edited
  }
}

void add_findings(const json &line, const std::string &name, Totals &totals, TaskTotals &task) {
  std::string first;
  for (const json &finding : field<std::vector<json>>(line, "findings")) {
    const auto key = field<std::string>(finding, "key");
    if (first.empty()) first = key;
    FindingTotals &found = totals.findings[key];
    if (found.times++ > 0) continue;
    found.task = name;
    found.message = field<std::string>(finding, "message");
    found.folder = field<std::string>(finding, "folder");
    found.first_seen = field<int64_t>(line, "at");
  }
  task.failing = first.empty() ? 0 : first == task.last_finding ? task.failing + 1 : 1;
  task.last_finding = first;
}

/// Points within a slice: a fuzzer says how many inputs it has run, not when.
void add_progress(const json &line, TaskTotals &task) {
  const auto seconds = field<double>(line, "seconds");
  const auto executions = static_cast<double>(field<uint64_t>(line, "executions"));
  for (const auto &[at, seen] :
       field<std::vector<std::pair<uint64_t, uint64_t>>>(line, "progress")) {
    if (static_cast<double>(at) >= executions) continue;
    task.features = std::max(task.features, seen);
    task.growth.push_back({task.seconds + seconds * static_cast<double>(at) / executions,
                           task.executions + at, task.features});
  }
}

} // namespace

double TaskTotals::still_growing() const {
  if (growth.empty() || features == 0) return 0;
  const double from = 0.75 * seconds;
  uint64_t before = 0;
  for (const Point &p : growth)
    if (p.seconds <= from) before = p.features;
  return static_cast<double>(features - std::min(before, features)) / static_cast<double>(features);
}

Totals add_up(const std::vector<json> &lines) {
  Totals totals;
  std::vector<std::set<std::string>> samples;
  for (const json &line : lines) {
    const auto begun = field<std::string>(line, "begin"), ended = field<std::string>(line, "end");
    if (line.contains("session")) ++totals.sessions;
    if (!begun.empty()) {
      TaskTotals &task = totals.tasks[begun];
      const auto seed = field<uint64_t>(line, "seed");
      task.first_seed = task.slices == 0 ? seed : std::min(task.first_seed, seed);
      task.last_seed = std::max(task.last_seed, seed);
      ++task.slices;
      ++task.lost;
    }
    if (ended.empty()) continue;
    TaskTotals &task = totals.tasks[ended];
    task.lost = std::max(0, task.lost - 1);
    add_progress(line, task);
    task.seconds += field<double>(line, "seconds");
    task.executions += field<uint64_t>(line, "executions");
    totals.seconds += field<double>(line, "seconds");
    task.trouble = field<std::string>(line, "trouble");
    const auto classes = field<std::set<std::string>>(line, "classes");
    totals.classes.insert(classes.begin(), classes.end());
    if (!classes.empty()) samples.push_back(classes);
    const auto features =
        line.contains("classes") ? totals.classes.size() : field<uint64_t>(line, "features");
    task.features = std::max<uint64_t>(task.features, features);
    task.growth.push_back({task.seconds, task.executions, task.features});
    add_findings(line, ended, totals, task);
  }
  totals.residual = residual(samples);
  return totals;
}

} // namespace assay::campaign
