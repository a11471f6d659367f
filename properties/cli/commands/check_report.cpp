// SPDX-License-Identifier: Apache-2.0
#include "properties/cli/commands/check_report.h"

#include <algorithm>
#include <limits>
#include <map>
#include <ostream>
#include <set>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "properties/case/classify.h"
#include "properties/cli/plugins/declaration_file.h"
#include "properties/tools/report/document.h"

namespace assay {
namespace {

struct KernelTotals {
  int cases = 0, findings = 0, undecided = 0, discarded = 0;
  double t0 = 0, t1 = 0, t2 = 0, lse = 0, seconds = 0;
  uint64_t outputs = 0, no_claim = 0, declared_away = 0, certified = 0;
  oracle::BudgetSizes budgets;
  ReachedSizes reached;
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
    t.no_claim += r.no_claim;
    t.declared_away += r.declared_away;
    // The cases of others are extreme on purpose, or sums of two bounds.
    if (r.property == find_property("within_budget")) t.budgets = r.budgets;
    t.certified += r.certified_rows;
    t.reached.merge(r.reached);
  }
  return t;
}

/// JSON has no infinity: the largest double stands for it, so that every reader sees it above 1.
nlohmann::json worst_json(double t0, double t1, double t2, double lse) {
  const auto finite = [](double ratio) {
    return std::min(ratio, std::numeric_limits<double>::max());
  };
  return {{"ratio_t0", finite(t0)},
          {"ratio_t1", finite(t1)},
          {"ratio_t2", finite(t2)},
          {"ratio_lse", finite(lse)}};
}

/// The parts of the contract about NaN that a kernel declares.
nlohmann::json nan_json(const assay_kernel &kernel) {
  nlohmann::json promised = nlohmann::json::array();
  if (kernel.nan_contract & ASSAY_NAN_VALUES) promised.push_back("values");
  if (kernel.nan_contract & ASSAY_NAN_SCORES) promised.push_back("scores");
  return promised;
}

/// Says of each size the largest that ten judged draws reached (0: fewer than ten have it), the
/// largest of any, and why no draw has more.
nlohmann::json reached_json(const assay_kernel &kernel, const ReachedSizes &reached,
                            const Envelope *envelope) {
  nlohmann::json out = nlohmann::json::object();
  const std::map<std::string, int> ten = reached.sizes();
  for (const auto &[name, most] : reached.most()) {
    const auto often = ten.find(name);
    out[name] = {{"ten", often == ten.end() ? 0 : often->second},
                 {"most", most},
                 {"end", why_no_larger(static_cast<Family>(kernel.family), name, most, envelope)}};
  }
  return out;
}

nlohmann::json kernel_json(const RunSummary &summary, const assay_kernel *kernel,
                           const Envelopes &envelopes) {
  KernelTotals t = totals_of(summary, kernel);
  const auto narrow = envelopes.find(kernel);
  return {{"name", kernel->name},
          {"cases", t.cases},
          {"findings", t.findings},
          {"undecided", t.undecided},
          {"discarded", t.discarded},
          {"seconds", t.seconds},
          {"outputs", t.outputs},
          {"no_claim", t.no_claim},
          {"declared_away", t.declared_away},
          {"median_budget", t.budgets.median()},
          {"certified_rows", t.certified},
          {"reached",
           reached_json(*kernel, t.reached, narrow == envelopes.end() ? nullptr : &narrow->second)},
          {"nan_contract", nan_json(*kernel)},
          {"declaration", declaration_json(*kernel)},
          {"classes", important_classes(static_cast<Family>(kernel->family))},
          {"envelope",
           narrow == envelopes.end() ? nlohmann::json::object() : to_json(*kernel, narrow->second)},
          {"envelope_text", narrow == envelopes.end() ? std::vector<std::string>{}
                                                      : in_words(*kernel, narrow->second)},
          {"not_covered", not_covered(summary, kernel)},
          {"worst", worst_json(t.t0, t.t1, t.t2, t.lse)}};
}

/// Null for a property that concerns no selected kernel.
nlohmann::json property_json(const RunSummary &summary, const Property &property) {
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
  if (runs == 0) return nullptr;
  return {{"name", property.name},
          {"statement", property.statement},
          {"cases", cases},
          {"findings", findings},
          {"classes", classes}};
}

/// What one property proved of one kernel.
nlohmann::json run_json(const PropertyRun &r) {
  return {{"kernel", r.kernel->name},
          {"property", r.property->name},
          {"cases", r.cases},
          {"findings", r.findings},
          {"undecided", r.undecided},
          {"discarded", r.discarded},
          {"unsupported", r.unsupported},
          {"nothing_compared", r.hollow_cases},
          {"started", r.started},
          {"hollow", r.hollow()},
          {"seconds", r.seconds},
          {"outputs", r.outputs},
          {"no_claim", r.no_claim},
          {"worst", worst_json(r.ratio_t0, r.ratio_t1, r.ratio_t2, r.ratio_lse)},
          {"errors", {{"o", r.errors_o.cases}, {"lse", r.errors_lse.cases}}},
          {"counters", r.counters},
          {"classes", r.classes},
          {"missing", r.missing},
          {"never_asked", r.never_asked},
          {"outside", r.outside},
          {"last_discard", r.discard_reason},
          {"error", r.harness_error}};
}

/// What the run does not show of a kernel that some property concerns.
std::vector<std::string> kernel_gaps(const RunSummary &summary, const assay_kernel *kernel) {
  std::vector<std::string> out;
  if (summary.idle(kernel)) out.push_back(report::kNothingDecided);
  if (summary.declared_away(kernel))
    out.push_back("more than 1 % of its outputs have no claim, for the errors that it declares");
  for (const PropertyRun &r : summary.runs)
    if (r.kernel == kernel) out.insert(out.end(), r.never_asked.begin(), r.never_asked.end());
  return out;
}

constexpr const char *kNoProperty = "no property says anything about it";

} // namespace

void add_kernel_gaps(nlohmann::json &document, const RunSummary &summary,
                     const std::vector<const assay_kernel *> &kernels,
                     const std::vector<const assay_kernel *> &idle) {
  for (size_t i = 0; i < kernels.size(); ++i) {
    nlohmann::json &gaps = document["kernels"][i]["gaps"] = nlohmann::json::array();
    const bool concerned =
        std::any_of(summary.runs.begin(), summary.runs.end(),
                    [&](const PropertyRun &r) { return r.kernel == kernels[i]; });
    if (std::find(idle.begin(), idle.end(), kernels[i]) != idle.end()) gaps.push_back(kNoProperty);
    for (const std::string &gap :
         concerned ? kernel_gaps(summary, kernels[i]) : std::vector<std::string>{})
      gaps.push_back(gap);
  }
}

nlohmann::json to_json(const RunSummary &summary, const std::string &target,
                       const std::vector<const assay_kernel *> &kernels, const Envelopes &envelopes,
                       const KeptFindings &kept, int exit) {
  nlohmann::json document = {{"version", ASSAY_VERSION},
                             {"target", target},
                             {"seed", summary.seed},
                             {"seconds", summary.seconds},
                             {"cases", summary.cases()},
                             {"findings", summary.findings() + kept.failed()},
                             {"undecided", summary.undecided() + kept.undecided()},
                             {"replayed", to_json(kept)},
                             {"kernels", nlohmann::json::array()},
                             {"properties", nlohmann::json::array()},
                             {"runs", nlohmann::json::array()},
                             {"complete", true},
                             {"exit", exit}};
  for (const PropertyRun &run : summary.runs)
    document["runs"].push_back(run_json(run));
  for (const assay_kernel *kernel : kernels)
    document["kernels"].push_back(kernel_json(summary, kernel, envelopes));
  for (const Property &property : properties())
    if (nlohmann::json entry = property_json(summary, property); !entry.is_null())
      document["properties"].push_back(std::move(entry));
  return document;
}

} // namespace assay
