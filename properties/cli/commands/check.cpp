// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <filesystem>
#include <fstream>
#include <ostream>
#include <vector>

#include <unistd.h>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "properties/cli/commands/check_report.h"
#include "properties/cli/commands/commands.h"
#include "properties/cli/findings/failed_shapes.h"
#include "properties/cli/findings/finding_log.h"
#include "properties/cli/plugins/envelopes.h"
#include "properties/cli/session/identity.h"
#include "properties/cli/session/interrupt.h"
#include "properties/tools/report/html.h"
#include "properties/tools/report/junit.h"
#include "properties/tools/report/markdown.h"
#include "properties/tools/report/sarif.h"
#include "properties/tools/report/terminal.h"

namespace assay {
namespace {

void print_progress(const Session &session, const Progress &p) {
  session.streams.out << fmt::format("\r\033[K{:>3}/{} properties  {:>6} cases  {}", p.done,
                                     p.total, p.cases,
                                     p.findings == 0
                                         ? "0 failing"
                                         : session.red(fmt::format("{} failing", p.findings)))
                      << std::flush;
}

/// --out must take files before hours of work, not after them. What permissions say is not enough:
/// /proc refuses root, a full disk anyone. Leaves nothing behind.
void require_writable_folder(const std::string &folder) {
  namespace fs = std::filesystem;
  std::error_code ec;
  std::vector<fs::path> made; // the innermost first
  for (fs::path at = fs::absolute(folder, ec); !fs::exists(at, ec) && at.has_relative_path();
       at = at.parent_path())
    made.push_back(at);
  fs::create_directories(folder, ec);
  const fs::path file = fs::path(folder) / fmt::format(".assay-{}", getpid());
  const bool good = bool(std::ofstream(file) << "x" << std::flush);
  fs::remove(file, ec);
  for (const fs::path &at : made)
    fs::remove(at, ec); // not what somebody else has put something into
  if (!good) throw CliError(kExitUsage, fmt::format("--out {}: cannot write there", folder));
}

/// Kernels that no selected property concerns.
std::vector<const assay_kernel *> idle_kernels(const RunSummary &summary,
                                               const std::vector<const assay_kernel *> &kernels) {
  std::vector<const assay_kernel *> idle;
  for (const assay_kernel *kernel : kernels)
    if (std::none_of(summary.runs.begin(), summary.runs.end(),
                     [&](const PropertyRun &r) { return r.kernel == kernel; }))
      idle.push_back(kernel);
  return idle;
}

RunSummary run(const Session &session, const CheckOptions &o,
               const std::vector<const assay_kernel *> &kernels,
               const std::vector<const Property *> &selected, const Envelopes &envelopes,
               StopOnSignal &stop, FindingLog &log) {
  RunnerOptions options;
  options.seed = session.options.seed;
  if (o.cases > 0) options.cases = o.cases;
  options.budget = o.budget;
  options.threads = o.threads;
  options.envelopes = envelopes;
  options.replay_scores = std::ranges::all_of(
      kernels, [&](const assay_kernel *kernel) { return session.replays_scores(*kernel); });
  options.isolate = session.isolates();
  options.assumed = session.options.assumed;
  if (session.workers || session.isolates())
    options.make_sut = [&](const assay_kernel &kernel) { return session.sut(kernel); };
  options.found = [&](const PropertyRun &r) {
    log.found(r);
    if (o.fail_fast) stop.request();
  };
  options.hung = [&](const PropertyRun &r, const Problem &p, const CheckResult &result) {
    log.hung(r, p, result);
  };
  options.stop = &stop.flag();
  const bool live = session.streams.terminal && !session.options.quiet;
  auto summary = run_properties(kernels, selected, options, [&](const Progress &p) {
    if (live) print_progress(session, p);
  });
  if (live) session.streams.out << "\r\033[K";
  return summary;
}

} // namespace

int command_check(Session &session, const CheckOptions &o) {
  const Selection &which = o.selection;
  const std::string target = which.target.empty() ? "simt" : which.target;
  auto kernels = session.select_kernels(which.kernel, target);
  auto selected = session.select_properties(which.property);
  if (!o.folders.out.empty()) require_writable_folder(o.folders.out);
  const ReportFiles reports(session, o.reports,
                            {report::junit, report::sarif, report::markdown, report::html});
  // Before anything is replayed: --only may name no field.
  const Envelopes envelopes = envelopes_of(session, kernels, o.only);
  StopOnSignal stop;
  KeptFindings kept = replay_kept(session, o.folders, kernels, selected);
  group_kept(session, kept, stop.flag());
  report_kept(session, kept);
  // A serving shape is large: the draw goes on to a case that shrinks.
  const bool ended_by_kept = o.fail_fast && kept.failed() > kept.failed_shapes();
  if (ended_by_kept) stop.request();
  FindingLog log(session, o.folders, o.only);
  // Until the report is there, the file says that it is not: a killed run leaves no pass behind.
  session.begin({{"complete", false},
                 {"target", target},
                 {"seed", session.options.seed},
                 {"assumed", words_of(session.options.assumed)},
                 {"exit", kExitHarness}});
  RunSummary summary = run(session, o, kernels, selected, envelopes, stop, log);
  if (summary.runs.empty())
    throw CliError(kExitUsage, fmt::format("property {} says nothing about {}", which.property,
                                           which.kernel.empty() ? "these kernels" : which.kernel));
  // A property that was asked for may concern some kernels only; otherwise each has some.
  const auto idle =
      which.property.empty() ? idle_kernels(summary, kernels) : std::vector<const assay_kernel *>{};
  shrink_failed_shapes(session, kept, summary, log, stop.flag());
  log.group(summary, kept, stop.flag());
  const int findings = static_cast<int>(log.groups().size()) + kept.findings();
  const int undecided = summary.undecided() + kept.undecided();
  int exit = kExitPass;
  if (undecided > 0 || summary.incomplete() || !idle.empty() || stop.flag()) exit = kExitHarness;
  if (findings > 0) exit = kExitFinding;
  nlohmann::json document = to_json(summary, target, kernels, envelopes, kept, exit);
  add_kernel_gaps(document, summary, kernels, idle);
  log.write_json(document, summary.seed);
  document.update(identity_json(session));
  document["assumed"] = words_of(session.options.assumed);
  document["ended"] = !stop.flag()                  ? ""
                      : o.fail_fast && findings > 0 ? "first finding"
                                                    : "interrupted";
  session.streams.out << report::terminal(document,
                                          {.colours = session.streams.terminal,
                                           .quiet = session.options.quiet,
                                           .columns = session.streams.terminal ? 80u : 0u});
  document["exit"] = exit = reports.write(document, exit);
  return session.finish(document, exit);
}

} // namespace assay
