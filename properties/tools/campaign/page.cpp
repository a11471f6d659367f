// SPDX-License-Identifier: Apache-2.0
#include "properties/tools/campaign/page.h"

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <set>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "properties/tools/campaign/error.h"
#include "properties/tools/report/escape.h"
#include "properties/tools/report/html_page.h"

namespace assay::campaign {
namespace {

using nlohmann::json;
using report::markup;

json task_of(const std::string &name, const TaskTotals &t) {
  json growth = json::array();
  for (const Point &p : t.growth)
    growth.push_back({p.seconds, p.executions, p.features});
  return {{"name", name},
          {"slices", t.slices},
          {"first_seed", t.first_seed},
          {"last_seed", t.last_seed},
          {"lost", t.lost},
          {"seconds", t.seconds},
          {"executions", t.executions},
          {"features", t.features},
          {"still_growing", t.still_growing()},
          {"left_alone", t.failing >= 3},
          {"trouble", t.trouble},
          {"growth", growth}};
}

std::string hours(double seconds) {
  return seconds < 90     ? fmt::format("{:.0f} s", seconds)
         : seconds < 5400 ? fmt::format("{:.0f} min", seconds / 60)
                          : fmt::format("{:.1f} h", seconds / 3600);
}

/// With a space between thousands.
std::string grouped(uint64_t n) {
  std::string digits = std::to_string(n);
  for (auto at = static_cast<std::ptrdiff_t>(digits.size()) - 3; at > 0; at -= 3)
    digits.insert(static_cast<size_t>(at), "\u2009");
  return digits;
}

std::string rate(double a_second) {
  return a_second < 100 ? fmt::format("{:.2g}", a_second)
                        : grouped(static_cast<uint64_t>(a_second));
}

/// Features over time, from 0; the axes say where they end.
std::string plot(const json &task) {
  constexpr double kWidth = 420, kHeight = 120, kLeft = 4, kTop = 8;
  const double seconds = std::max(1.0, task.at("seconds").get<double>());
  const double most = std::max<double>(1.0, task.at("features").get<double>());
  std::string points = fmt::format("{},{}", kLeft, kTop + kHeight);
  double last = kTop + kHeight;
  for (const json &p : task.at("growth")) {
    const double x = kLeft + kWidth * p.at(0).get<double>() / seconds;
    const double y = kTop + kHeight * (1 - p.at(2).get<double>() / most);
    points += fmt::format(" {:.1f},{:.1f} {:.1f},{:.1f}", x, last, x, y);
    last = y;
  }
  return fmt::format("<svg viewBox=\"0 0 {} {}\" role=\"img\" aria-label=\"features over time\">"
                     "<line x1=\"{}\" y1=\"{}\" x2=\"{}\" y2=\"{}\" class=\"axis\"/>"
                     "<polyline points=\"{}\"/><text x=\"{}\" y=\"{}\">0</text>"
                     "<text x=\"{}\" y=\"{}\" text-anchor=\"end\">{}</text></svg>",
                     kWidth + 2 * kLeft, kHeight + 28, kLeft, kTop + kHeight, kLeft + kWidth,
                     kTop + kHeight, points, kLeft, kTop + kHeight + 15, kLeft + kWidth,
                     kTop + kHeight + 15, hours(seconds));
}

std::string task_card(const json &task) {
  const double growing = task.at("still_growing").get<double>();
  const double seconds = std::max(1e-9, task.at("seconds").get<double>());
  std::string notes;
  if (task.at("lost").get<int>() > 0)
    notes += fmt::format(
        "<p>{} slices were cut off; what they found is kept, what they counted is not.</p>",
        task.at("lost").get<int>());
  if (task.at("left_alone").get<bool>())
    notes += "<p>Left alone: it ends with the same finding each time.</p>";
  if (const auto trouble = task.at("trouble").get<std::string>(); !trouble.empty())
    notes += fmt::format("<p class=\"over\">{}</p>", markup(trouble));
  return fmt::format("<section class=\"task\"><h3>{}</h3>{}<p>{} features, {} of them in the last "
                     "quarter of the time<br>{} {} in {} ({} a second)</p>{}</section>\n",
                     markup(task.at("name").get<std::string>()), plot(task),
                     grouped(task.at("features").get<uint64_t>()),
                     growing > 0 ? fmt::format("{:.1f} %", 100 * growing) : "none",
                     grouped(task.at("executions").get<uint64_t>()),
                     task.at("name") == "check" ? "cases" : "inputs", hours(seconds),
                     rate(task.at("executions").get<double>() / seconds), notes);
}

/// What was looked at, and what for.
std::string subject_of(const json &report) {
  const auto library = report.at("library").get<std::string>();
  const std::string of = library.empty() ? "assay's own kernels" : "kernels of " + markup(library);
  std::string checked, fuzzed;
  for (const json &task : report.at("tasks"))
    if (task.at("name") != "check")
      fuzzed += (fuzzed.empty() ? "" : ", ") + markup(task.at("name").get<std::string>());
    else if (task.at("slices").get<int>() > 0)
      checked =
          fmt::format("check drew cases for {} with seeds from {} to {}", of,
                      task.at("first_seed").get<uint64_t>(), task.at("last_seed").get<uint64_t>());
  std::string kernels;
  for (const json &kernel : report.at("kernels"))
    kernels += (kernels.empty() ? ": " : ", ") + markup(kernel.get<std::string>());
  if (!checked.empty()) checked += kernels + ". ";
  if (!fuzzed.empty())
    fuzzed = "Fuzz targets, of assay's own code: " + fuzzed + ".";
  else if (!library.empty())
    fuzzed =
        "That is what a campaign of a plugin is for: ever new cases of its kernels, more than a "
        "check has time for. Fuzz targets are of assay's own code, and left out.";
  return "<p>" + checked + fuzzed + "</p>\n";
}

std::string findings_of(const json &report) {
  if (report.at("findings").empty()) return "";
  std::string out = "<h2>Findings</h2>\n";
  for (const json &f : report.at("findings"))
    out += fmt::format(
        "<article class=\"card\"><h3>{}</h3><p><code>{}</code></p><p class=\"soft\">{}, seen {} "
        "times; {}</p></article>\n",
        markup(f.at("task").get<std::string>()), markup(f.at("message").get<std::string>()),
        markup(f.at("key").get<std::string>()), f.at("times").get<int>(),
        markup(f.at("folder").get<std::string>()));
  return out;
}

std::string residual_of(const json &report) {
  const json &r = report.at("residual");
  std::string text;
  if (const auto why = r.at("why_none").get<std::string>(); !why.empty())
    text = "No estimate: " + markup(why) + ".";
  else
    text = fmt::format(
        "The next run of check is expected to show {:.3g} (95 %: {:.3g} to {:.3g}) combinations of "
        "kernel, property and class of cases that none of {} runs has shown; they showed {}.",
        r.at("expected").get<double>(), r.at("low").get<double>(), r.at("high").get<double>(),
        r.at("samples").get<int>(), r.at("species").get<int>());
  return fmt::format("<h2>What is left to see</h2>\n<p>{} A curve that has become flat says that "
                     "this search finds "
                     "nothing new, not that nothing is there.</p>\n",
                     text);
}

void write_whole(const std::string &path, const std::string &text) {
  std::ofstream file(path + ".part", std::ios::binary);
  file << text << std::flush;
  if (!file) throw CampaignError(4, fmt::format("{}: cannot write", path));
  file.close();
  std::filesystem::rename(path + ".part", path);
}

constexpr const char *kPlotStyle = R"css(
.tasks { display: grid; grid-template-columns: repeat(auto-fill, minmax(min(100%, 22rem), 1fr)); gap: .8rem; }
.task { padding: .8rem 1rem; background: var(--panel); border: 1px solid var(--line); border-radius: .5rem; }
.task h3 { margin: 0 0 .3rem; font-size: 1rem; } .task p { margin: .3rem 0 0; font-size: .9rem; }
svg { width: 100%; height: auto; } svg text { fill: var(--soft); font-size: 12px; }
polyline { fill: none; stroke: var(--link); stroke-width: 2; } .axis { stroke: var(--line); }
)css";

} // namespace

json report_of(const Options &options, const std::vector<std::string> &tasks,
               const Totals &totals) {
  json out = {
      {"version", options.version}, {"complete", true},        {"sessions", totals.sessions},
      {"seconds", totals.seconds},  {"dir", options.dir},      {"tasks", json::array()},
      {"findings", json::array()},  {"residual", nullptr},     {"exit", 0},
      {"library", options.library}, {"kernels", json::array()}};
  std::set<std::string> kernels; // a class is kernel/property/class
  for (const std::string &seen : totals.classes)
    kernels.insert(seen.substr(0, seen.find('/')));
  out["kernels"] = kernels;
  bool idle = false;
  for (const std::string &name : tasks) {
    const auto at = totals.tasks.find(name);
    const TaskTotals t = at == totals.tasks.end() ? TaskTotals{} : at->second;
    idle = idle || !t.trouble.empty();
    out["tasks"].push_back(task_of(name, t));
  }
  for (const auto &[key, f] : totals.findings)
    out["findings"].push_back({{"key", key},
                               {"task", f.task},
                               {"message", f.message},
                               {"folder", f.folder},
                               {"times", f.times},
                               {"first_seen", f.first_seen}});
  const Residual &r = totals.residual;
  out["residual"] = {{"expected", r.expected}, {"low", r.low},         {"high", r.high},
                     {"samples", r.samples},   {"species", r.species}, {"why_none", r.why_none}};
  out["exit"] = !totals.findings.empty() ? 1 : idle ? 4 : 0;
  return out;
}

Totals totals_of(const json &report) {
  Totals totals;
  for (const json &task : report.at("tasks")) {
    TaskTotals &t = totals.tasks[task.at("name").get<std::string>()];
    t.seconds = task.at("seconds").get<double>();
    t.executions = task.at("executions").get<uint64_t>();
    t.features = task.at("features").get<uint64_t>();
    for (const json &p : task.at("growth"))
      t.growth.push_back({p.at(0).get<double>(), p.at(1).get<uint64_t>(), p.at(2).get<uint64_t>()});
  }
  return totals;
}

std::string page(const json &report) {
  const int exit = report.at("exit").get<int>();
  const char *word = exit == 0 ? "nothing found" : exit == 1 ? "findings" : "incomplete";
  std::string tasks;
  for (const json &task : report.at("tasks"))
    tasks += task_card(task);
  const std::string summary = fmt::format(
      "{} of work, sessions: {}, findings: {}", hours(report.at("seconds").get<double>()),
      report.at("sessions").get<int>(), report.at("findings").size());
  return report::html_page({.of = "assay campaign",
                            .verdict = word,
                            .exit = exit,
                            .summary = summary,
                            .version = report.at("version").get<std::string>(),
                            .style = kPlotStyle,
                            .filter = nullptr,
                            .main = subject_of(report) + findings_of(report) +
                                    "<h2>Growth</h2>\n<div class=\"tasks\">\n" + tasks +
                                    "</div>\n" + residual_of(report)});
}

void write_report(const std::string &folder, const json &report) {
  // Bytes of a fuzzer that are not UTF-8 become U+FFFD, once for both.
  const std::string text = report.dump(2, ' ', false, json::error_handler_t::replace);
  write_whole(folder + "/report.json", text + "\n");
  write_whole(folder + "/report.html", page(json::parse(text)));
}

} // namespace assay::campaign
