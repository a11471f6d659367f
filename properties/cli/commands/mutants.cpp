// SPDX-License-Identifier: Apache-2.0
// mutants: the kill matrix of corpus/mutants.
#include <algorithm>
#include <ostream>
#include <thread>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "corpus/mutants/mutants.h"
#include "properties/cli/commands/commands.h"
#include "properties/cli/commands/default_draw.h"
#include "properties/cli/commands/first_schedule.h"
#include "properties/cli/commands/usual_rules.h"
#include "properties/run/kill_matrix.h"
#include "properties/run/processors.h"

namespace assay {
namespace {

/// Where a mutant that concerns several kernels is shown, unless --kernel says.
constexpr const char *kPreferred[] = {"paged_attention_v2", "paged_attention_v1",
                                      "cascade_attention", "merge_states", "merge_state"};

bool is_chosen(const mutants::Mutant &m, const std::vector<std::string> &chosen) {
  if (chosen.empty()) return !m.needs_features; // the matrix draws plain attention
  return std::find(chosen.begin(), chosen.end(), m.name) != chosen.end();
}

/// Per kernel the correct one, then its mutants.
std::vector<KillSubject> subjects_of(const std::string &only,
                                     const std::vector<std::string> &chosen) {
  std::vector<KillSubject> out;
  // A wrong name is an error even if nothing is listed.
  if (!only.empty() && mutants::find_kernel(only) == nullptr)
    throw CliError(kExitUsage, fmt::format("no kernel '{}' has mutants", only));
  for (const char *name : kPreferred) {
    if (!only.empty() && only != name) continue;
    std::vector<KillSubject> mine = {{0, kCorrectKernels, "", mutants::find_kernel(name)}};
    for (const mutants::Mutant &m : mutants::all()) {
      if (!is_chosen(m, chosen)) continue;
      auto home = std::find_if(std::begin(kPreferred), std::end(kPreferred),
                               [&](const char *k) { return concerns(m, k); });
      bool here = only.empty() ? home != std::end(kPreferred) && *home == std::string(name)
                               : concerns(m, name);
      if (here) mine.push_back({m.id, m.name, m.why, mutants::find_kernel(name)});
    }
    if (mine.size() > 1) out.insert(out.end(), mine.begin(), mine.end());
  }
  return out;
}

struct Totals {
  int runs = 0;     ///< of mutants
  int finished = 0; ///< of those, the ones without a hazard
  std::array<int, kKillColumns> killed{};
  std::array<int, kKillColumns> alone{}; ///< mutants that this check of ours sees and no other
};

bool sees(const KillRow &row, int column) { return row.killed[column] > 0; }

Totals totals_of(const std::vector<KillRow> &rows) {
  Totals t;
  for (const KillRow &row : rows) {
    if (row.subject.id == 0) continue;
    t.runs += row.runs;
    t.finished += row.judged[kClose2];
    int ours = 0;
    for (int c = kTier0; c < kAnyOfOurs; ++c)
      ours += sees(row, c);
    for (int c = 0; c < kKillColumns; ++c) {
      t.killed[c] += row.killed[c];
      t.alone[c] += c >= kTier0 && c < kAnyOfOurs && ours == 1 && sees(row, c);
    }
  }
  return t;
}

void print_header(std::ostream &out, const std::string &title) {
  out << fmt::format("\n{:<26}", title);
  for (const char *name : kKillColumnNames)
    out << fmt::format(" {:>7}", name);
  out << "\n";
}

/// Twice: of the runs that returned values, and of all. A run that stops at a hazard on the
/// executor returns something on a device, so the value columns are not charged for it in the first
/// line.
void print_totals(std::ostream &out, const Totals &totals) {
  print_header(out, "all mutants");
  auto line = [&](const std::string &name, int runs, auto killed) {
    out << fmt::format("{:<26}", fmt::format("{} {}", runs, name));
    for (int c = 0; c < kKillColumns; ++c)
      out << fmt::format(" {:>6.1f}%", runs == 0 ? 0.0 : 100.0 * killed(c) / runs);
    out << "\n";
  };
  line("runs with values", totals.finished, [&](int c) {
    int stopped = c == kHazards || c == kAnyOfOurs ? totals.runs - totals.finished : 0;
    return totals.killed[c] - stopped;
  });
  line("runs", totals.runs, [&](int c) { return totals.killed[c]; });
  out << fmt::format("{:<26}", "mutants seen by it alone");
  for (int c = 0; c < kKillColumns; ++c)
    out << (c < kTier0 || c == kAnyOfOurs ? fmt::format(" {:>7}", "")
                                          : fmt::format(" {:>7}", totals.alone[c]));
  out << "\n";
}

void print_rows(std::ostream &out, const std::vector<KillRow> &rows) {
  const assay_kernel *kernel = nullptr;
  for (const KillRow &row : rows) {
    if (row.subject.kernel != kernel) print_header(out, row.subject.kernel->name);
    kernel = row.subject.kernel;
    out << fmt::format("{:<26}", row.subject.name);
    for (int c = 0; c < kKillColumns; ++c)
      out << (row.judged[c] == 0 ? fmt::format(" {:>7}", "-")
                                 : fmt::format(" {:>7}", row.killed[c]));
    out << "\n";
  }
  print_totals(out, totals_of(rows));
}

nlohmann::json to_json(const std::vector<KillRow> &rows, const KillOptions &options, int exit) {
  nlohmann::json document = {{"keys", options.keys},           {"splits", options.splits},
                             {"runs", options.runs},           {"seed", options.seed},
                             {"columns", kKillColumnNames},    {"exit", exit},
                             {"rows", nlohmann::json::array()}};
  for (const KillRow &row : rows) {
    nlohmann::json killed;
    for (int c = 0; c < kKillColumns; ++c) {
      auto &cell = killed[kKillColumnNames[c]];
      if (row.judged[c] > 0) cell = row.killed[c]; // else null
    }
    document["rows"].push_back({{"mutant", row.subject.id == 0 ? "" : row.subject.name},
                                {"why", row.subject.why},
                                {"kernel", row.subject.kernel->name},
                                {"runs", row.runs},
                                {"killed", killed}});
  }
  Totals totals = totals_of(rows);
  document["totals"]["runs"] = totals.runs;
  document["totals"]["runs_with_values"] = totals.finished;
  for (int c = 0; c < kKillColumns; ++c)
    document["totals"]["killed"][kKillColumnNames[c]] = totals.killed[c];
  return document;
}

/// A correct kernel that is rejected is a finding; a mutant that no check of ours ever saw is a
/// hole in the harness.
int print_verdicts(const Session &session, const std::vector<KillRow> &rows) {
  int exit = kExitPass;
  for (const KillRow &row : rows) {
    int seen = row.killed[kAnyOfOurs];
    const char *what = nullptr;
    if (row.subject.id == 0 && seen > 0) {
      exit = kExitFinding;
      what = "FALSE ALARM";
    } else if (row.subject.id != 0 && seen == 0) {
      if (exit == kExitPass) exit = kExitHarness;
      what = "SURVIVES";
    }
    if (what != nullptr)
      session.streams.out << fmt::format("{} {} {} {}\n", session.red(what),
                                         row.subject.kernel->name, row.subject.name,
                                         row.subject.why);
  }
  return exit;
}

} // namespace

int command_mutants(Session &session, const MutantsOptions &o) {
  if (mutants::all().empty())
    throw CliError(kExitUnsupported, "mutants: this program was built without (ASSAY_MUTANTS=OFF)");
  const bool draws = o.default_draw || o.first_schedule || o.usual_rules;
  for (const std::string &name : o.mutants)
    if (!(draws && name == kCorrectKernels) &&
        std::none_of(mutants::all().begin(), mutants::all().end(),
                     [&](const mutants::Mutant &m) { return name == m.name; }))
      throw CliError(kExitUsage, fmt::format("--mutant {}: no such mutant", quoted_word(name)));
  if (o.default_draw) return draw_for_mutants(session, o);
  if (o.first_schedule) return report_on_first_schedule(session, o);
  if (o.usual_rules) return judge_by_usual_rules(session, o);
  KillOptions options;
  options.seed = session.options.seed;
  if (o.runs > 0) options.runs = o.runs;
  if (o.keys > 0) options.keys = o.keys;
  if (o.splits > 0) options.splits = o.splits;
  int cores = usable_processors();
  options.threads = std::clamp(o.threads > 0 ? o.threads : cores, 1, options.runs);
  auto subjects = subjects_of(o.kernel, o.mutants);
  if (subjects.empty()) throw CliError(kExitUsage, fmt::format("no mutant concerns {}", o.kernel));
  auto rows = kill_matrix(
      subjects, [](int id) { mutants::active_id = id; }, options);
  if (!session.options.quiet) {
    session.streams.out << fmt::format(
        "{} keys, {} splits, N(0,1), bf16 (merges fp32), head_dim 64, {} runs, seed {}\n",
        options.keys, options.splits, options.runs, options.seed);
    print_rows(session.streams.out, rows);
    for (const char *name : mutants::omitted())
      session.streams.out << fmt::format("left out: {}, its text is not in the kernels\n", name);
  }
  int exit = print_verdicts(session, rows);
  return session.finish(to_json(rows, options, exit), exit);
}

} // namespace assay
