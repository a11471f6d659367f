// SPDX-License-Identifier: Apache-2.0
#include "properties/cli/commands/usual_rules.h"

#include <mutex>
#include <ostream>
#include <set>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "oracle/judge/usual_rules.h"
#include "properties/case/case_text.h"
#include "properties/cli/commands/default_draw.h"
#include "properties/relate/bounds.h"
#include "properties/relate/compared.h"
#include "properties/relate/relation.h"

namespace assay {
namespace {

enum Rule { kClose2, kClose3, kMostly, kTwice, kRules };
constexpr const char *kRuleNames[kRules] = {"1e-2", "1e-3", "98%", "2x"};

/// What all threads found of one mutant: names of cases.
struct Verdicts {
  int judged = 0;
  std::set<std::string> rejected[kRules];
  std::set<std::string> ended;   ///< the kernel crashed, hung, or refused them
  std::set<std::string> stopped; ///< at what only the executor sees
};
std::mutex lock;
Verdicts verdicts;

/// The case with the values of a usual test.
Problem ordinary(Problem p) {
  for (Values *values : {&p.q, &p.k, &p.v})
    *values = {Regime::kNormal, 0, values->seed};
  if (p.lse_regime == LseRegime::kHuge || p.lse_regime == LseRegime::kSpread)
    p.lse_regime = LseRegime::kNormal;
  return p;
}

bool has_plain_run(const Problem &p) {
  return is_attention(p) && p.logits_soft_cap == Softcap::kNone && p.alibi == Alibi::kNone &&
         p.sinks == Sinks::kNone;
}

/// O of one row as one tensor; heads of which the oracle claims nothing are left out.
void judge_row(RunBounds &bounds, const Tensors &out, int row, bool (&accepted)[kRules]) {
  const Problem &p = out.problem;
  const auto dtype = static_cast<assay_dtype>(p.dtype);
  std::vector<float> got;
  std::vector<double> exact, plain;
  for (int head = 0; head < out.heads(); ++head) {
    const RowBound bound = bounds.row(row, head);
    if (!bound.claim && !bound.empty) continue;
    for (int i = 0; i < p.head_dim; ++i) {
      got.push_back(static_cast<float>(comparable(out.out_o(row, head, i), p.dtype)));
      exact.push_back(bound.empty || bound.o.empty() ? 0.0 : bound.o[i]);
    }
    if (!has_plain_run(p)) continue;
    const OracleRow r = bounds.every_tier(row, head, false);
    const auto of_head = r.keys->size() == 0
                             ? std::vector<double>(p.head_dim, 0.0)
                             : oracle::plain_attention(r.q, *r.keys, sm_scale(p), dtype);
    plain.insert(plain.end(), of_head.begin(), of_head.end());
  }
  count_compared(got.size());
  accepted[kClose2] &= oracle::all_close(got, exact, 1e-2);
  accepted[kClose3] &= oracle::all_close(got, exact, 1e-3);
  accepted[kMostly] &= oracle::mostly_close(got, exact);
  if (!plain.empty()) accepted[kTwice] &= oracle::within_twice_plain(got, exact, plain, dtype);
}

/// What no test overlooks, on whatever it runs.
bool ends_a_test(const CheckResult &result) {
  return result.symptom.kind == Symptom::Kind::kCrash ||
         result.symptom.kind == Symptom::Kind::kRefused;
}

/// Passes whatever the rules say: that is in `verdicts`.
CheckResult by_usual_rules(const Problem &drawn, Sut &sut) {
  const Problem p = ordinary(drawn);
  const Outcome run = run_problem(p, sut);
  if (run.check.kind == CheckResult::Kind::kDiscard) return run.check;
  const std::string name =
      fmt::format("{} {:016x}", sut.kernel().name, std::hash<std::string>()(format_problem(p)));
  bool accepted[kRules] = {true, true, true, true};
  if (run.ok()) {
    RunBounds bounds(run, sut);
    for (int row = 0; row < run.after.rows(); ++row)
      judge_row(bounds, run.after, row, accepted);
  } else {
    count_compared();
  }
  std::lock_guard guard(lock);
  ++verdicts.judged;
  if (!run.ok()) (ends_a_test(run.check) ? verdicts.ended : verdicts.stopped).insert(name);
  for (int rule = 0; rule < kRules; ++rule)
    if (!accepted[rule]) verdicts.rejected[rule].insert(name);
  return CheckResult::pass();
}

} // namespace

int judge_by_usual_rules(Session &session, const MutantsOptions &options) {
  // Three times as many cases as the property has, so that no rule is short of any.
  const Property property = in_place_of_within_budget(by_usual_rules, 30);
  nlohmann::json rows = nlohmann::json::array();
  for (const mutants::Mutant *m : chosen_mutants(options)) {
    verdicts = {};
    draw_for_mutant(session, options, *m, {&property});
    nlohmann::json row = {{"mutant", m->name},
                          {"cases", verdicts.judged},
                          {"ended", verdicts.ended},
                          {"stopped", verdicts.stopped}};
    std::string counts;
    for (int rule = 0; rule < kRules; ++rule) {
      row["rejected"][kRuleNames[rule]] = verdicts.rejected[rule];
      counts += fmt::format("  {} {}", kRuleNames[rule], verdicts.rejected[rule].size());
    }
    session.streams.out << fmt::format("{:<34} {} cases, rejected by{}; ended {}, stopped {}\n",
                                       m->name, verdicts.judged, counts, verdicts.ended.size(),
                                       verdicts.stopped.size())
                        << std::flush;
    rows.push_back(row);
  }
  return session.finish({{"seed", session.options.seed}, {"rows", rows}, {"exit", kExitPass}},
                        kExitPass);
}

} // namespace assay
