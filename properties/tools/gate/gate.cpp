// SPDX-License-Identifier: Apache-2.0
#include "properties/tools/gate/gate.h"

#include <algorithm>
#include <chrono>
#include <filesystem>
#include <fstream>

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <nlohmann/json.hpp>

#include "properties/tools/gate/declarations.h"
#include "properties/tools/gate/error.h"
#include "properties/tools/report/document.h"

namespace assay::gate {
namespace {

/// Per kernel and property: of every kernel, where the budget is an ordinary one or a short one,
/// and what those that a change touches get doubles it. A number of cases and not a time, so that a
/// re-run runs the same.
constexpr int kShortCases = 10, kFewCases = 2, kMaxDoublings = 9;
constexpr double kShortBudget = 180;

int short_cases(double budget) { return budget < kShortBudget ? kFewCases : kShortCases; }

/// The report of a base that does not have the kernel.
json nothing_run() {
  const json none = json::array();
  return {{"kernels", none},
          {"runs", none},
          {"groups", none},
          {"found", none},
          {"replayed", {{"results", none}, {"ledger", none}}},
          {"exit", kPass}};
}

std::set<std::string> kernel_names(const json &list, const std::string &target) {
  std::set<std::string> out;
  for (const json &kernel : list.value("kernels", json::array()))
    if (kernel.value("target", "") == target) out.insert(kernel.at("name").get<std::string>());
  return out;
}

/// Head's kernels may be slow, or hang in every case: then its run ends with what it has.
constexpr double kHeadPatience = 120, kHeadFactor = 3;

double now() {
  return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count();
}

RedLine line_of(const Classed &c) {
  std::string text = fmt::format("{}: {}", c.property, c.message);
  if (!c.how_far.empty()) text += "; " + c.how_far;
  if (c.state == Classed::State::kFlaky)
    text += fmt::format(" (fails in {} of {} replays, never on base)", c.head.fails, c.head.runs);
  if (c.base.fails > 0 && c.state == Classed::State::kNew)
    text += " (base fails this case in another way)";
  return {.id = std::string(name_of(c.state)) + "-finding",
          .text = text,
          .kernel = c.kernel,
          .acceptable = false,
          .file = c.file,
          .reproduce = c.reproduce};
}

} // namespace

Gate::Gate(const Options &options, const Progress &progress)
    : options_(options), progress_(progress), start_(now()) {}

double Gate::seconds() const { return now() - start_; }

void Gate::add(RedLines red) { append(red_, std::move(red)); }

void Gate::harness_failed(const std::string &why) { failures_.push_back(why); }

bool Gate::red() const {
  return std::any_of(red_.begin(), red_.end(), [&](const RedLine &line) {
    return !line.acceptable ||
           std::count(options_.accept.begin(), options_.accept.end(), line.id) == 0;
  });
}

bool Gate::blocked() const {
  return std::any_of(findings_.begin(), findings_.end(), [](const Classed &c) { return c.red; });
}

void Gate::hold_declarations(JudgedChange &judged) {
  progress_.step("what both revisions declare");
  const json base = list_kernels(judged.revisions.base, progress_);
  json head;
  try {
    head = list_kernels(judged.revisions.head, progress_);
  } catch (const GateError &e) {
    throw GateError(kFinding, e.what());
  }
  of_base_ = kernel_names(base, options_.target);
  of_head_ = kernel_names(head, options_.target);
  Comparison compared = compare_declarations(base, head, options_.target);
  const bool differ = !compared.red.empty() || !compared.notes.empty();
  add(std::move(compared.red));
  for (std::string &text : compared.notes)
    note(std::move(text));
  bool said = false;
  for (const json &kernel : base.value("kernels", json::array()))
    said = said || kernel.contains("declaration");
  if (!differ || !said) return;
  // Beside the cases: their reproduce lines name it.
  const std::filesystem::path folder = std::filesystem::absolute(options_.out);
  std::filesystem::create_directories(folder);
  judged.revisions.head.declaration = (folder / "declared-by-base.json").string();
  std::ofstream(judged.revisions.head.declaration) << base.dump();
}

bool Gate::run(const JudgedChange &judged, const CheckOrder &order) {
  const std::string what = fmt::format("{} cases a property, {}", order.cases, order.kernel);
  Round round{order.round, order.kernel, nothing_run(), {}};
  CheckOrder limited = order;
  if (of_base_.count(order.kernel) > 0) {
    progress_.step("check base: " + what);
    round.base = check(judged.revisions.base, order, progress_);
    limited.seconds = kHeadPatience + kHeadFactor * round.base.at("seconds").get<double>();
  }
  progress_.step("check head: " + what);
  try {
    round.head = check(judged.revisions.head, limited, progress_);
  } catch (const GateError &e) {
    // Base's run of the same command gave one.
    add({red_line("no-report", order.kernel, e.what())});
    return false;
  }
  judge_round(judged, round);
  rounds_.push_back(std::move(round));
  return true;
}

void Gate::judge_round(const JudgedChange &judged, const Round &round) {
  for (Classed &c : classify(judged.revisions, round.base, round.head, options_.out, progress_)) {
    const bool seen = std::any_of(findings_.begin(), findings_.end(), [&](const Classed &other) {
      return other.kernel == c.kernel && other.fingerprint == c.fingerprint &&
             other.state == c.state;
    });
    if (seen) continue;
    if (c.red) add({line_of(c)});
    findings_.push_back(std::move(c));
  }
  if (round.number == 1) { // kept findings and envelopes are the same in every round
    add(kept_red_lines(round.base, round.head, notes_));
    add(compare_envelopes(round.base, round.head));
  }
  RedLines unproved = proof_red_lines(round.base, round.head, notes_);
  // Where something was found, what else was not shown is no news.
  if (report::verdict_word(round.head) != "FAIL") add(std::move(unproved));
}

void Gate::judge_added(const JudgedChange &judged) {
  for (const AddedCase &added : judged.added)
    for (Classed &c :
         classify_added(judged.revisions, added.path, added.text, options_.out, progress_)) {
      if (c.red) add({line_of(c)});
      findings_.push_back(std::move(c));
    }
}

int Gate::long_cases(const std::vector<std::string> &kernels) const {
  if (options_.cases > 0) return options_.cases;
  double cost = 0; // cost of both revisions
  for (const Round &round : rounds_)
    if (std::find(kernels.begin(), kernels.end(), round.kernel) != kernels.end())
      cost += round.base.value("seconds", 0.0) + round.head.value("seconds", 0.0);
  // A part of the short run went into classes that must occur: doubling its cases costs less.
  const double left = options_.budget - seconds();
  const int first = short_cases(options_.budget);
  int cases = 0;
  for (int next = first; next <= first << kMaxDoublings && cost < left; cost *= 2, next *= 2)
    cases = next;
  return cases > first ? cases : 0;
}

std::vector<std::string> Gate::kernels_of(const JudgedChange &judged, bool touched) const {
  for (const std::string &name : judged.kernels)
    if (of_base_.count(name) + of_head_.count(name) == 0)
      throw GateError(kUsage, fmt::format("assay.toml: gate.kernels: there is no kernel {}", name));
  std::vector<std::string> out;
  for (const std::string &name : of_head_) {
    const bool asked =
        judged.kernels.empty() ||
        std::find(judged.kernels.begin(), judged.kernels.end(), name) != judged.kernels.end();
    if (asked && touched == (judged.all_touched || judged.touched.count(name) > 0))
      out.push_back(name);
  }
  return out;
}

bool Gate::short_round(const JudgedChange &judged) {
  const double begin = seconds();
  for (const bool touched : {true, false}) {
    for (const std::string &kernel : kernels_of(judged, touched))
      if (!run(judged, {.kernel = kernel,
                        .cases = short_cases(options_.budget),
                        .seed = options_.seed,
                        .round = 1}))
        return false;
    if (!blocked()) continue;
    if (touched && !kernels_of(judged, false).empty())
      note("blocked: kernels that the change does not touch were not run");
    break;
  }
  document_["plan"]["short_seconds"] = seconds() - begin;
  return true;
}

void Gate::long_round(const JudgedChange &judged) {
  const double begin = seconds();
  const std::vector<std::string> kernels = kernels_of(judged, true);
  if (kernels.empty()) return;
  const int cases = long_cases(kernels);
  document_["plan"]["long_cases"] = cases;
  if (cases == 0) return note("the budget ended with the short run");
  for (const std::string &kernel : kernels)
    if (!run(judged, {.kernel = kernel, .cases = cases, .seed = options_.seed + 1, .round = 2}))
      return;
  document_["plan"]["long_seconds"] = seconds() - begin;
}

void Gate::judge(JudgedChange &judged) {
  constexpr double kTenMinutes = 600;
  if (!(options_.budget > 0)) options_.budget = kTenMinutes;
  add(std::move(judged.red));
  for (Revision *revision : {&judged.revisions.base, &judged.revisions.head})
    revision->assumed = fmt::format("{}", fmt::join(options_.assumed, ","));
  try {
    hold_declarations(judged);
  } catch (const GateError &e) {
    if (e.code != kFinding) throw;
    return add({red_line("refused", "", e.what())});
  }
  document_["plan"] = {{"kind", "kernels"},
                       {"short_cases", short_cases(options_.budget)},
                       {"long_cases", 0},
                       {"budget", options_.budget}};
  judge_added(judged);
  if (short_round(judged)) {
    if (blocked())
      note("blocked by the short run: no long one");
    else
      long_round(judged);
  }
  if (options_.target == "cuda" && !blocked()) race(judged);
  summarise(judged);
}

void Gate::add_figures(Figures figures) {
  add(std::move(figures.red));
  for (std::string &text : figures.notes)
    note(std::move(text));
}

void Gate::summarise(const JudgedChange &judged) {
  std::vector<CounterShift> counters;
  for (const Round &round : rounds_)
    for (CounterShift &shift : counter_shifts(round.base, round.head))
      counters.push_back(std::move(shift));
  add_figures(judge_counters(counters));
  for (const Round &round : rounds_)
    for (ErrorShift &shift : error_shifts(round.base, round.head)) {
      if (shift.grew)
        add({red_line("error-grew", shift.kernel,
                      fmt::format("error of {} over its bound grew {:.2f} times in the median of "
                                  "{} properties (p = {:.1e})",
                                  shift.output, shift.median, shift.more + shift.less, shift.p))});
      shifts_.push_back(std::move(shift));
    }
  if (!judged.revisions.base.plugin.empty())
    add_figures(compare_size(judged.revisions.base.plugin, judged.revisions.head.plugin));
  json &rows = document_["kernels"] = json::array();
  for (const Round &round : rounds_)
    for (const json &kernel : round.number == 1 ? round.head.at("kernels") : json::array())
      rows.push_back(kernel_row(judged, kernel.at("name")));
}

} // namespace assay::gate
