// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <filesystem>
#include <map>
#include <ostream>

#include <unistd.h>

#include <fmt/format.h>

#include "properties/case/classify.h"
#include "properties/cli/check_report.h"
#include "properties/cli/envelopes.h"
#include "properties/cli/interrupt.h"

namespace assay {
namespace {

void print_progress(const Session &session, const Progress &p) {
  session.streams.out << fmt::format("\r\033[K{:>3}/{} properties  {:>6} cases  {}", p.done,
                                     p.total, p.cases,
                                     p.findings == 0
                                         ? "0 findings"
                                         : session.red(fmt::format("{} findings", p.findings)))
                      << std::flush;
}

Case case_of(const PropertyRun &run) {
  Case c;
  c.kernel = run.kernel->name;
  c.property = run.property->name;
  c.target = target_name(run.kernel->target);
  c.note = run.first[0].result.message;
  c.problem = run.first[0].shrunk;
  return c;
}

/// The findings of a run: on disk as soon as they are shrunk, in words at its end.
class FindingLog {
public:
  explicit FindingLog(const Session &session)
      : session_(session),
        folder_(session.options.out.empty() ? kFindingsFolder : session.options.out) {}

  /// Never throws: what cannot be written is printed instead.
  void write(const PropertyRun &run) {
    const Case c = case_of(run);
    Written &w = written_[&run];
    w.path = (std::filesystem::path(folder_) / finding_name(c)).string();
    try {
      write_case(w.path, c);
    } catch (const std::exception &e) {
      w.error = e.what();
    }
  }

  /// What, why and how to see it again.
  void report(const PropertyRun &run, uint64_t seed) {
    const Finding &f = run.first[0];
    const Case c = case_of(run);
    const Written &w = written_[&run];
    std::ostream &out = session_.streams.out;
    out << fmt::format("\n{} {} {}: {}\n", session_.red("FINDING"), c.kernel, c.property,
                       f.result.message);
    if (!f.result.detail.empty()) out << f.result.detail;
    out << fmt::format("  {} of {} cases fail; shrunk in {} steps ({} tried{})\n", run.findings,
                       run.cases, f.stats.accepted, f.stats.checks,
                       f.stats.exhausted ? ", budget spent" : "");
    const std::string kernels = session_.kernel_options();
    if (w.error.empty())
      out << fmt::format("  reproduce: assay replay {}{}\n", shell_quoted(w.path), kernels);
    else
      out << fmt::format("  {}; the case:\n{}", w.error, format_case(c));
    out << fmt::format("  drawn by:  assay check --kernel {} --property {} --target {} --seed {} "
                       "--cases {}{}\n",
                       c.kernel, c.property, c.target, seed, f.cases, session_.draw_options());
  }

  /// For machines: what report() says, and the classes of the case.
  nlohmann::json to_json(const PropertyRun &run, uint64_t seed) {
    const Finding &f = run.first[0];
    const Written &w = written_[&run];
    nlohmann::json entry = {{"kernel", run.kernel->name},
                            {"property", run.property->name},
                            {"message", f.result.message},
                            {"detail", f.result.detail},
                            {"failing_cases", run.findings},
                            {"cases", run.cases},
                            {"seed", seed},
                            {"draw", f.index},
                            {"classes", classify(f.shrunk)},
                            {"case", format_case(case_of(run))}};
    if (w.error.empty()) {
      entry["file"] = w.path;
      entry["reproduce"] =
          fmt::format("assay replay {}{}", shell_quoted(w.path), session_.kernel_options());
    }
    return entry;
  }

private:
  struct Written {
    std::string path, error;
  };
  const Session &session_;
  std::string folder_;
  std::map<const PropertyRun *, Written> written_;
};

/// --out must take files before hours of work, not after them.
void require_writable_folder(const std::string &folder) {
  namespace fs = std::filesystem;
  std::error_code ec;
  fs::path at = fs::absolute(folder, ec);
  while (!fs::exists(at, ec) && at.has_relative_path())
    at = at.parent_path();
  const bool good = fs::is_directory(at, ec) && access(at.c_str(), W_OK | X_OK) == 0;
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

RunSummary run(const Session &session, const std::vector<const assay_kernel *> &kernels,
               const std::vector<const Property *> &selected, const Envelopes &envelopes,
               const StopOnSignal &stop, FindingLog &log) {
  const CliOptions &o = session.options;
  RunnerOptions options;
  options.seed = o.seed;
  if (o.cases > 0) options.cases = o.cases;
  options.budget = o.budget;
  options.threads = o.threads;
  options.envelopes = envelopes;
  options.replay_scores = session.replays_scores();
  options.isolate = session.isolates(kernels[0]->target);
  if (session.workers)
    options.make_sut = [&](const assay_kernel &kernel) { return session.sut(kernel); };
  options.found = [&](const PropertyRun &r) { log.write(r); };
  options.stop = &stop.flag();
  const bool live = session.streams.terminal && !o.quiet;
  auto summary = run_properties(kernels, selected, options, [&](const Progress &p) {
    if (live) print_progress(session, p);
  });
  if (live) session.streams.out << "\r\033[K";
  return summary;
}

void print_verdict(const Session &session, const RunSummary &summary, const std::string &target,
                   int findings, int undecided, int exit) {
  std::string verdict = exit == kExitPass ? session.green("pass") : session.red("FAIL");
  if (summary.outputs() > 0)
    session.streams.out << fmt::format(
        "\noracle: {} outputs judged, {} rows certified in interval arithmetic", summary.outputs(),
        summary.certified_rows());
  session.streams.out << fmt::format(
      "\n{}: {} cases, {} findings, {} undecided, target {}, seed {}, {:.1f} s\n", verdict,
      summary.cases(), findings, undecided, target, summary.seed, summary.seconds);
}

} // namespace

int command_check(Session &session) {
  const CliOptions &o = session.options;
  std::string target = o.target.empty() ? "simt" : o.target;
  auto kernels = session.select_kernels(o.kernel, target);
  auto selected = session.select_properties(o.property);
  if (!o.out.empty()) require_writable_folder(o.out);
  const StopOnSignal stop;
  KeptFindings kept = replay_kept(session, kernels, selected);
  report_kept(session, kept);
  FindingLog log(session);
  // Until the report is there, the file says that it is not: a killed run leaves no pass behind.
  session.begin(
      {{"complete", false}, {"target", target}, {"seed", o.seed}, {"exit", kExitHarness}});
  const Envelopes envelopes = envelopes_of(session, kernels);
  const RunSummary summary = run(session, kernels, selected, envelopes, stop, log);
  if (summary.runs.empty())
    throw CliError(kExitUsage, fmt::format("property {} says nothing about {}", o.property,
                                           o.kernel.empty() ? "these kernels" : o.kernel));
  // A property that was asked for may concern some kernels only; otherwise each has some.
  const auto idle =
      o.property.empty() ? idle_kernels(summary, kernels) : std::vector<const assay_kernel *>{};
  if (!o.quiet) {
    print_table(session, summary, kernels);
    report_envelopes(session, summary, envelopes);
  }
  for (const PropertyRun &run : summary.runs)
    if (!run.first.empty()) log.report(run, summary.seed);
  if (stop.flag())
    session.streams.out << fmt::format(
        "\n{}: {} of {} properties not run, those in progress cut short\n",
        session.red("INTERRUPTED"), summary.unstarted(), summary.runs.size());
  else
    report_gaps(session, summary, idle);
  int exit = kExitPass;
  int undecided = summary.undecided() + kept.undecided();
  int findings = summary.findings() + kept.failed();
  if (undecided > 0 || summary.incomplete() || !idle.empty() || stop.flag()) exit = kExitHarness;
  if (findings > 0) exit = kExitFinding;
  if (!o.quiet) print_verdict(session, summary, target, findings, undecided, exit);
  nlohmann::json document = to_json(summary, target, kernels, envelopes, kept, exit);
  for (const PropertyRun &run : summary.runs)
    if (!run.first.empty()) document["found"].push_back(log.to_json(run, summary.seed));
  return session.finish(document, exit);
}

} // namespace assay
