// SPDX-License-Identifier: Apache-2.0
#include "properties/cli/commands/first_schedule.h"

#include <ostream>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "properties/cli/commands/default_draw.h"
#include "properties/cli/findings/case_file.h"
#include "properties/relate/compared.h"
#include "properties/relate/outcome.h"

namespace assay {
namespace {

CheckResult by_executor(const Problem &drawn, Sut &sut) {
  Problem p = drawn;
  p.schedule.order = BlockOrder::kAscending;
  p.schedule.copies = CopyTiming::kAtWait;
  const Outcome run = run_problem(p, sut);
  if (run.check.kind == CheckResult::Kind::kDiscard) return run.check;
  count_compared();
  return run.ok() ? CheckResult::pass() : run.check;
}

/// The kernel and the first report, of the cases that the options name, or of those that are drawn.
struct Reported {
  int64_t cases = 0;
  std::string kernel, message; // empty: nothing was reported
};

Reported in_named_cases(const std::vector<std::string> &paths, const mutants::Mutant &mutant) {
  Reported out;
  const mutants::Activate active(mutant.id);
  for (const std::string &path : paths) {
    const Case c = load_case(path);
    const assay_kernel *kernel = mutants::find_kernel(c.kernel);
    if (kernel == nullptr)
      throw CliError(kExitUsage, fmt::format("{}: no kernel {} has mutants", path, c.kernel));
    const auto sut = make_sut(*kernel);
    const CheckResult result = by_executor(c.problem, *sut);
    ++out.cases;
    if (result.failed()) return {out.cases, kernel->name, result.message};
  }
  return out;
}

Reported in_draws(const Session &session, const MutantsOptions &options,
                  const mutants::Mutant &mutant) {
  const Property property = in_place_of_within_budget(by_executor, 10);
  const RunSummary summary = draw_for_mutant(session, options, mutant, {&property});
  for (const PropertyRun &run : summary.runs)
    if (!run.first.empty()) return {summary.cases(), run.kernel->name, run.first[0].result.message};
  return {summary.cases(), "", ""};
}

} // namespace

int report_on_first_schedule(Session &session, const MutantsOptions &options) {
  nlohmann::json rows = nlohmann::json::array();
  int exit = kExitPass;
  for (const mutants::Mutant *m : chosen_mutants(options)) {
    const Reported found =
        options.cases.empty() ? in_draws(session, options, *m) : in_named_cases(options.cases, *m);
    nlohmann::json row = {{"mutant", m->name}, {"cases", found.cases}};
    if (!found.message.empty()) {
      row["kernel"] = found.kernel;
      row["message"] = found.message;
    }
    if (row.contains("message") && m->id == 0)
      exit = kExitFinding;
    else if (!row.contains("message") && m->id != 0 && exit == kExitPass)
      exit = kExitHarness;
    session.streams.out << fmt::format("{:<34} {} cases: {}\n", m->name, found.cases,
                                       row.value("message", "not reported"))
                        << std::flush;
    rows.push_back(row);
  }
  return session.finish({{"seed", session.options.seed}, {"rows", rows}, {"exit", exit}}, exit);
}

} // namespace assay
