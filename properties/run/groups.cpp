// SPDX-License-Identifier: Apache-2.0
#include "properties/run/groups.h"

#include <algorithm>
#include <chrono>

#include "properties/run/runner.h"

namespace assay {
namespace {

Cause cause_of_finding(const Finding &f, const PropertyRun &run) {
  return f.after_others ? cause_after_others(f.result)
                        : cause_of(f.shrunk, f.result, *run.kernel, *run.property, f.stats);
}

using Clock = std::chrono::steady_clock;

/// The case with values that hide nothing: a property that sets its own leaves those of its
/// smallest case at zero.
Problem with_plain_values(Problem p, Regime keys, uint32_t seed) {
  p.q = p.k = p.v = {Regime::kNormal, 0, seed};
  p.k = {keys, 0, seed + 100};
  p.v.seed += 200;
  if (p.lse_regime == LseRegime::kEqual) p.lse_regime = LseRegime::kNormal;
  return p;
}

std::vector<Problem> with_other_values(const Problem &p) {
  constexpr uint32_t kSeeds = 4;
  std::vector<Problem> out;
  for (uint32_t seed = 1; seed <= kSeeds; ++seed)
    for (Regime keys : {Regime::kNormal, Regime::kRising})
      out.push_back(with_plain_values(p, keys, seed));
  return out;
}

/// Groups the findings of one kernel.
class Grouper {
public:
  Grouper(const assay_kernel &kernel, const GroupOptions &options)
      : kernel_(kernel), options_(options), sut_(options.sut(kernel)) {}

  void add(NamedFinding found, std::vector<FindingGroup> &groups) {
    for (FindingGroup &group : groups)
      if (same(group.members[0], found)) {
        group.members.push_back(std::move(found));
        return;
      }
    groups.emplace_back().members.push_back(std::move(found));
  }

private:
  bool same(const NamedFinding &a, const NamedFinding &b) {
    const Cause &of_a = a.cause, &of_b = b.cause;
    // One place, or the same things needed: nobody has to be asked.
    const bool telling = of_a.located() || !of_a.features.empty() || !of_a.shape.empty();
    if (telling && alike(of_a, of_b)) return true;
    // A kernel that ends its process would end it for every question.
    if (of_a.symptom.kind == Symptom::Kind::kCrash || of_b.symptom.kind == Symptom::Kind::kCrash)
      return false;
    if (spent()) return alike(of_a, of_b);
    return shows(*a.run->property, b.finding(), of_a) || shows(*b.run->property, a.finding(), of_b);
  }

  /// Whether the property fails on the other's case, small or as it was drawn, and, once that is
  /// shrunk, as it failed on its own.
  bool shows(const Property &property, const Finding &other, const Cause &own) {
    constexpr int kTries = 3;
    int failures = 0;
    std::vector<Problem> cases = with_other_values(other.shrunk);
    cases.insert(cases.begin(), {other.shrunk, other.drawn});
    for (const Problem &p : cases) {
      if (spent() || failures == kTries) return false;
      if (!check(property, p).failed()) continue;
      ++failures;
      const auto fails = [&](const Problem &q) { return check(property, q).failed(); };
      const Problem small = shrink(p, fails, {.checks = 400, .seconds = 3, .stop = options_.stop});
      if (agree(property, cause(property, small, check(property, small)), small, own)) return true;
    }
    return false;
  }

  /// The simplest values may hide that an output is wrong: other values of the case may show it.
  bool agree(const Property &property, Cause found, const Problem &small, const Cause &own) {
    if (alike(found, own)) return true;
    if (found.located()) return false;
    for (const Problem &p : with_other_values(small)) {
      const CheckResult r = check(property, p);
      if (!r.failed()) continue;
      const Cause more = cause(property, p, r);
      found.wrong_o |= more.wrong_o;
      found.wrong_lse |= more.wrong_lse;
    }
    return alike(found, own);
  }

  CheckResult check(const Property &property, const Problem &p) {
    return checked(property, p, *sut_, nullptr);
  }
  Cause cause(const Property &property, const Problem &p, const CheckResult &r) const {
    return cause_of(p, r, kernel_, property);
  }

  bool spent() const {
    const std::chrono::duration<double> t = Clock::now() - start_;
    const bool stopped = options_.stop != nullptr && options_.stop->load(std::memory_order_relaxed);
    return stopped || t.count() > options_.seconds;
  }

  const assay_kernel &kernel_;
  const GroupOptions &options_;
  std::unique_ptr<Sut> sut_;
  Clock::time_point start_ = Clock::now();
};

} // namespace

NamedFinding::NamedFinding(const PropertyRun &r)
    : run(&r), cause(cause_of_finding(finding(), r)),
      fingerprint(assay::fingerprint(*r.kernel, *r.property, cause)) {}

std::vector<FindingGroup> group_findings(const std::vector<const PropertyRun *> &found,
                                         const GroupOptions &options) {
  std::vector<const assay_kernel *> kernels;
  for (const PropertyRun *run : found)
    if (std::find(kernels.begin(), kernels.end(), run->kernel) == kernels.end())
      kernels.push_back(run->kernel);
  std::vector<FindingGroup> out;
  for (const assay_kernel *kernel : kernels) {
    std::vector<const PropertyRun *> runs;
    for (const PropertyRun *run : found)
      if (run->kernel == kernel) runs.push_back(run);
    std::stable_sort(runs.begin(), runs.end(), [](const PropertyRun *a, const PropertyRun *b) {
      return a->property < b->property; // both of the one table
    });
    std::vector<FindingGroup> groups;
    Grouper grouper(*kernel, options);
    for (const PropertyRun *run : runs)
      grouper.add(NamedFinding(*run), groups);
    out.insert(out.end(), groups.begin(), groups.end());
  }
  return out;
}

std::vector<FindingGroup> group_findings(const RunSummary &summary, const GroupOptions &options) {
  std::vector<const PropertyRun *> found;
  for (const PropertyRun &run : summary.runs)
    if (!run.first.empty()) found.push_back(&run);
  return group_findings(found, options);
}

} // namespace assay
