// SPDX-License-Identifier: Apache-2.0
#include "properties/cli/commands/first_schedule.h"

#include <ostream>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "properties/cli/commands/default_draw.h"
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

} // namespace

int report_on_first_schedule(Session &session, const MutantsOptions &options) {
  const Property property = in_place_of_within_budget(by_executor, 10);
  nlohmann::json rows = nlohmann::json::array();
  int exit = kExitPass;
  for (const mutants::Mutant *m : chosen_mutants(options)) {
    const RunSummary summary = draw_for_mutant(session, options, *m, {&property});
    nlohmann::json row = {{"mutant", m->name}, {"cases", summary.cases()}};
    for (const PropertyRun &run : summary.runs)
      if (!run.first.empty() && !row.contains("message")) {
        row["kernel"] = run.kernel->name;
        row["message"] = run.first[0].result.message;
      }
    if (row.contains("message") && m->id == 0)
      exit = kExitFinding;
    else if (!row.contains("message") && m->id != 0 && exit == kExitPass)
      exit = kExitHarness;
    session.streams.out << fmt::format("{:<34} {} cases: {}\n", m->name, summary.cases(),
                                       row.value("message", "not reported"))
                        << std::flush;
    rows.push_back(row);
  }
  return session.finish({{"seed", session.options.seed}, {"rows", rows}, {"exit", exit}}, exit);
}

} // namespace assay
