// SPDX-License-Identifier: Apache-2.0
#include <filesystem>
#include <map>
#include <ostream>

#include <fmt/format.h>

#include "properties/cli/findings.h"

#ifndef ASSAY_VERSION
#define ASSAY_VERSION "unknown"
#endif

namespace assay {
namespace {

struct KernelTotals {
  int cases = 0, findings = 0, undecided = 0, discarded = 0;
  double t0 = 0, t1 = 0, t2 = 0, lse = 0, seconds = 0;
  uint64_t outputs = 0, certified = 0;
};

KernelTotals totals_of(const RunSummary &summary, const assay_kernel *kernel) {
  KernelTotals t;
  for (const PropertyRun &r : summary.runs) {
    if (r.kernel != kernel) continue;
    t.cases += r.cases;
    t.findings += r.findings;
    t.undecided += r.undecided;
    t.discarded += r.discarded;
    t.seconds += r.seconds;
    t.t0 = std::max(t.t0, r.ratio_t0);
    t.t1 = std::max(t.t1, r.ratio_t1);
    t.t2 = std::max(t.t2, r.ratio_t2);
    t.lse = std::max(t.lse, r.ratio_lse);
    t.outputs += r.outputs;
    t.certified += r.certified_rows;
  }
  return t;
}

void print_progress(const Session &session, const Progress &p) {
  session.streams.out << fmt::format("\r\033[K{:>3}/{} properties  {:>6} cases  {}", p.done,
                                     p.total, p.cases,
                                     p.findings == 0
                                         ? "0 findings"
                                         : session.red(fmt::format("{} findings", p.findings)))
                      << std::flush;
}

/// Writes the shrunk case and prints what, why and how to see it again.
void report_finding(const Session &session, const RunSummary &summary, const PropertyRun &run) {
  const Finding &f = run.first[0];
  Case c;
  c.kernel = run.kernel->name;
  c.property = run.property->name;
  c.target = target_name(run.kernel->target);
  c.note = f.result.message;
  c.problem = f.shrunk;
  std::string folder = session.options.out.empty() ? kFindingsFolder : session.options.out;
  std::string path = (std::filesystem::path(folder) / finding_name(c)).string();
  write_case(path, c);
  std::ostream &out = session.streams.out;
  out << fmt::format("\n{} {} {}: {}\n", session.red("FINDING"), c.kernel, c.property,
                     f.result.message);
  if (!f.result.detail.empty()) out << f.result.detail;
  out << fmt::format("  {} of {} cases fail; shrunk in {} steps ({} tried{})\n", run.findings,
                     run.cases, f.stats.accepted, f.stats.checks,
                     f.stats.exhausted ? ", budget spent" : "");
  out << fmt::format("  reproduce: assay replay {}\n", path);
  out << fmt::format("  drawn by:  assay check --kernel {} --property {} --target {} --seed {}\n",
                     c.kernel, c.property, c.target, summary.seed);
}

void report_gaps(const Session &session, const RunSummary &summary) {
  for (const PropertyRun &r : summary.runs) {
    std::string why;
    if (!r.harness_error.empty())
      why = r.harness_error;
    else if (r.hollow())
      why = fmt::format("no case was decided ({} discarded)", r.discarded);
    else if (!r.missing.empty())
      why = fmt::format("no case of class {}", fmt::join(r.missing, ", "));
    if (!why.empty())
      session.streams.out << fmt::format("{} {} {}: {}\n", session.red("INCOMPLETE"),
                                         r.kernel->name, r.property->name, why);
    if (r.undecided > 0)
      session.streams.out << fmt::format("{} {} {}: {} cases\n", session.red("UNDECIDED"),
                                         r.kernel->name, r.property->name, r.undecided);
  }
}

void print_table(const Session &session, const RunSummary &summary,
                 const std::vector<const assay_kernel *> &kernels) {
  std::ostream &out = session.streams.out;
  out << fmt::format("{:<24} {:>7} {:>9} {:>10} {:>8} {:>8} {:>8} {:>8}\n", "kernel", "cases",
                     "findings", "undecided", "T0", "T1", "T2", "LSE");
  for (const assay_kernel *kernel : kernels) {
    KernelTotals t = totals_of(summary, kernel);
    auto ratio = [](double x) { return x > 0 ? fmt::format("{:.3f}", x) : std::string("-"); };
    out << fmt::format("{:<24} {:>7} {:>9} {:>10} {:>8} {:>8} {:>8} {:>8}\n", kernel->name, t.cases,
                       t.findings, t.undecided, ratio(t.t0), ratio(t.t1), ratio(t.t2),
                       ratio(t.lse));
  }
}

nlohmann::json to_json(const RunSummary &summary, const std::string &target,
                       const std::vector<const assay_kernel *> &kernels, const KeptFindings &kept,
                       int exit) {
  nlohmann::json document = {{"version", ASSAY_VERSION},
                             {"target", target},
                             {"seed", summary.seed},
                             {"seconds", summary.seconds},
                             {"replayed", to_json(kept)},
                             {"kernels", nlohmann::json::array()},
                             {"properties", nlohmann::json::array()},
                             {"exit", exit}};
  for (const assay_kernel *kernel : kernels) {
    KernelTotals t = totals_of(summary, kernel);
    document["kernels"].push_back(
        {{"name", kernel->name},
         {"cases", t.cases},
         {"findings", t.findings},
         {"undecided", t.undecided},
         {"discarded", t.discarded},
         {"seconds", t.seconds},
         {"outputs", t.outputs},
         {"certified_rows", t.certified},
         {"worst",
          {{"ratio_t0", t.t0}, {"ratio_t1", t.t1}, {"ratio_t2", t.t2}, {"ratio_lse", t.lse}}}});
  }
  for (const Property &property : properties()) {
    int cases = 0, findings = 0, runs = 0;
    std::map<std::string, int> classes;
    for (const PropertyRun &r : summary.runs) {
      if (r.property != &property) continue;
      ++runs;
      cases += r.cases;
      findings += r.findings;
      for (const auto &[name, count] : r.classes)
        classes[name] += count;
    }
    if (runs > 0)
      document["properties"].push_back({{"name", property.name},
                                        {"cases", cases},
                                        {"findings", findings},
                                        {"classes", classes}});
  }
  return document;
}

} // namespace

int command_check(Session &session) {
  const CliOptions &o = session.options;
  std::string target = o.target.empty() ? "simt" : o.target;
  auto kernels = session.select_kernels(o.kernel, target);
  auto selected = session.select_properties(o.property);
  RunnerOptions options;
  options.seed = o.seed;
  if (o.cases > 0) options.cases = o.cases;
  options.budget = o.budget;
  options.threads = o.threads;
  options.replay_scores = session.replays_scores();
  KeptFindings kept = replay_kept(session, kernels, selected);
  report_kept(session, kept);
  bool live = session.streams.terminal && !o.quiet;
  auto summary = run_properties(kernels, selected, options, [&](const Progress &p) {
    if (live) print_progress(session, p);
  });
  if (summary.runs.empty())
    throw CliError(kExitUsage, fmt::format("property {} says nothing about {}", o.property,
                                           o.kernel.empty() ? "these kernels" : o.kernel));
  if (live) session.streams.out << "\r\033[K";
  if (!o.quiet) print_table(session, summary, kernels);
  for (const PropertyRun &run : summary.runs)
    if (!run.first.empty()) report_finding(session, summary, run);
  report_gaps(session, summary);
  int exit = kExitPass;
  int undecided = summary.undecided() + kept.undecided();
  int findings = summary.findings() + kept.failed();
  if (undecided > 0 || summary.incomplete()) exit = kExitHarness;
  if (findings > 0) exit = kExitFinding;
  if (!o.quiet) {
    std::string verdict = exit == kExitPass ? session.green("pass") : session.red("FAIL");
    if (summary.outputs() > 0)
      session.streams.out << fmt::format(
          "\noracle: {} outputs judged, {} rows certified in interval arithmetic",
          summary.outputs(), summary.certified_rows());
    session.streams.out << fmt::format(
        "\n{}: {} cases, {} findings, {} undecided, target {}, seed {}, {:.1f} s\n", verdict,
        summary.cases(), findings, undecided, target, summary.seed, summary.seconds);
  }
  session.write_json(to_json(summary, target, kernels, kept, exit));
  return exit;
}

} // namespace assay
