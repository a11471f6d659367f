// SPDX-License-Identifier: Apache-2.0
#include "properties/cli/commands/default_draw.h"

#include <algorithm>
#include <ostream>
#include <string>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "kernels/abi/kernel_table.h"
#include "properties/run/probe.h"

namespace assay {
namespace {

/// Kernels that the mutant concerns, all or one of them.
std::vector<const assay_kernel *> kernels_of(const mutants::Mutant &mutant,
                                             const std::string &only) {
  std::vector<const assay_kernel *> out;
  for (const assay_kernel &kernel : kernels_in(*mutants::plugin()))
    if (concerns(mutant, kernel.name) && (only.empty() || only == kernel.name))
      out.push_back(&kernel);
  return out;
}

/// No mutant, on all kernels: what every draw must pass.
const mutants::Mutant &correct() {
  static const std::string kKernels = [] {
    std::string list;
    for (const assay_kernel &kernel : kernels_in(*mutants::plugin()))
      list += (list.empty() ? "" : ", ") + std::string(kernel.name);
    return list;
  }();
  static const mutants::Mutant kCorrect = {
      0, kCorrectKernels, "", "the kernels as they are", kKernels.c_str(), false, ""};
  return kCorrect;
}

} // namespace

Property in_place_of_within_budget(CheckResult (*check)(const Problem &, Sut &), int weight) {
  Property p = *find_property("within_budget");
  p.check = check;
  p.weight = weight;
  return p;
}

std::vector<const mutants::Mutant *> chosen_mutants(const MutantsOptions &o) {
  std::vector<const mutants::Mutant *> out;
  if (std::find(o.mutants.begin(), o.mutants.end(), kCorrectKernels) != o.mutants.end())
    out.push_back(&correct());
  for (const mutants::Mutant &m : mutants::all()) {
    const bool named = o.mutants.empty() ||
                       std::find(o.mutants.begin(), o.mutants.end(), m.name) != o.mutants.end();
    if (named && !kernels_of(m, o.kernel).empty()) out.push_back(&m);
  }
  return out;
}

RunSummary draw_for_mutant(const Session &session, const MutantsOptions &asked,
                           const mutants::Mutant &mutant,
                           const std::vector<const Property *> &properties) {
  std::atomic<bool> failed = false;
  RunnerOptions options;
  options.seed = session.options.seed;
  options.threads = asked.threads;
  options.replay_scores = true;
  options.isolate = !processes_need_one_thread(); // a wrong plan may divide by zero
  // The mutants have a few dtypes and head_dims.
  options.counted_refusal = [](const assay_kernel &kernel, const RefusedCall &call) {
    return !mutants::has(kernel, call.dtype, call.kv_dtype, call.head_dim);
  };
  options.shrink = {.checks = 0, .seconds = 0};
  options.found = [&](const PropertyRun &) { failed = true; };
  options.stop = &failed;
  options.on_thread = [&] { mutants::active_id = mutant.id; };
  const auto kernels = kernels_of(mutant, asked.kernel);
  for (const assay_kernel *kernel : kernels)
    if (is_narrow(*kernel)) options.envelopes[kernel] = probe_envelope(*kernel, false);
  RunSummary summary = run_properties(kernels, properties, options, nullptr);
  mutants::active_id = 0;
  return summary;
}

namespace {

/// The run that noticed, or null. What check cannot go on from is noticed, too, and that a kernel
/// refuses what it has an instantiation for.
const PropertyRun *noticed(const RunSummary &summary) {
  for (const PropertyRun &run : summary.runs)
    if (!run.first.empty()) return &run;
  for (const PropertyRun &run : summary.runs)
    if (!run.harness_error.empty() || run.undecided > 0 || run.unsupported > 0) return &run;
  return nullptr;
}

std::string message_of(const PropertyRun &run) {
  if (!run.first.empty()) return run.first[0].result.message;
  if (!run.harness_error.empty()) return run.harness_error;
  return run.undecided > 0 ? "undecided" : "refused: " + run.discard_reason;
}

} // namespace

int draw_for_mutants(Session &session, const MutantsOptions &o) {
  const auto subjects = chosen_mutants(o);
  if (subjects.empty()) throw CliError(kExitUsage, fmt::format("no mutant concerns {}", o.kernel));
  nlohmann::json rows = nlohmann::json::array();
  std::vector<const Property *> all;
  for (const Property &property : properties())
    all.push_back(&property);
  int drawn = 0, survivors = 0, wronged = 0; // the correct kernels are not counted as mutants
  for (const mutants::Mutant *m : subjects) {
    const RunSummary summary = draw_for_mutant(session, o, *m, all);
    const PropertyRun *by = noticed(summary);
    drawn += m->id != 0;
    nlohmann::json row = {{"mutant", m->name}, {"why", m->why}, {"cases", summary.cases()}};
    if (by == nullptr) {
      survivors += m->id != 0;
      const std::string what = m->id != 0 ? session.red("SURVIVES") : "passes  ";
      session.streams.out << fmt::format("{} {:<34} {} cases, {:.1f} s: {}\n", what, m->name,
                                         summary.cases(), summary.seconds, m->why);
    } else {
      wronged += m->id == 0;
      session.streams.out << fmt::format("seen     {:<34} {} {}, case {}, {:.1f} s: {}\n", m->name,
                                         by->kernel->name, by->property->name, by->cases,
                                         summary.seconds, message_of(*by).substr(0, 100));
      row["kernel"] = by->kernel->name;
      row["property"] = by->property->name;
      row["case"] = by->cases;
      row["message"] = message_of(*by);
    }
    session.streams.out << std::flush;
    rows.push_back(row);
  }
  const int exit = wronged > 0 ? kExitFinding : survivors > 0 ? kExitHarness : kExitPass;
  session.streams.out << fmt::format("{} of {} seen by the draws of check, seed {}\n",
                                     drawn - survivors, drawn, session.options.seed);
  return session.finish({{"seed", session.options.seed}, {"rows", rows}, {"exit", exit}}, exit);
}

} // namespace assay
