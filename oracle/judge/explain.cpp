// SPDX-License-Identifier: Apache-2.0
#include "oracle/judge/explain.h"

#include <algorithm>
#include <cmath>
#include <cstdio>

#include "oracle/bounds/replay.h"

namespace assay::oracle {
namespace {

constexpr size_t kTop = 5;

std::vector<KeyInfluence> influences(const RowProblem &problem, const RowWork &work, int dim,
                                     const Explanation &e) {
  const KeySet &keys = *problem.keys;
  const TailErrors tail = tail_errors(work.model, work.shape);
  KeyReplay replay;
  ReplayBudget budget;
  if (e.has_t1) replay_keys(problem, work, replay, budget);
  const double low = std::max(work.mass_low, 0x1p-60);
  std::vector<KeyInfluence> result(keys.size());
  for (size_t j = 0; j < keys.size(); ++j) {
    KeyInfluence &k = result[j];
    k.key = static_cast<int>(j);
    k.weight = work.weight[j] / work.z;
    k.logit = work.x[j];
    k.t0 = k.weight * work.omega[j];
    if (dim < 0) continue;
    k.value = keys.value(j)[dim];
    const double v = static_cast<double>(k.value) * problem.features.v_scale, size = std::fabs(v);
    const double relative = work.model.p_unit + tail.pv + tail.merge;
    k.t0 = k.weight *
           (work.omega[j] * std::fabs(v - e.exact.mid) + (1 + work.omega[j]) * relative * size) /
           low;
    if (!e.has_t1) continue;
    const double rescale = budget.rescale[j] * v - budget.rescale_mass[j] * e.replayed.mid;
    k.t1 = ((budget.ambiguity[j] + budget.accumulate[j]) * size + std::fabs(rescale)) /
           budget.mass_low;
    k.ambiguous = budget.ambiguity[j] > 0.0;
  }
  return result;
}

template <class Key>
std::vector<KeyInfluence> largest(std::vector<KeyInfluence> keys, Key key) {
  const size_t count = std::min(kTop, keys.size());
  std::partial_sort(keys.begin(), keys.begin() + static_cast<int64_t>(count), keys.end(),
                    [&](const KeyInfluence &a, const KeyInfluence &b) { return key(a) > key(b); });
  keys.resize(count);
  return keys;
}

std::string line(const char *format, auto... values) {
  char text[256];
  std::snprintf(text, sizeof text, format, values...);
  return text;
}

std::string budget_text(const char *tier, const Enclosure &reference, const BudgetTerms &t) {
  return line("%s: reference %.9g +- %.1e, bound %.3e", tier, reference.mid, reference.rad,
              t.total) +
         line("\n    weights %.2e, P rounding %.2e, P.V %.2e, normalisation %.2e,", t.weights,
              t.p_rounding, t.accumulation, t.normalisation) +
         line("\n    merge %.2e, output rounding %.2e, underflow %.2e", t.merge, t.output_rounding,
              t.flush);
}

std::string key_text(const KeyInfluence &k, bool t1) {
  std::string text = line("\n    key %d: weight %.3e, logit %.6g, v %.6g, T0 part %.2e", k.key,
                          k.weight, k.logit, static_cast<double>(k.value), k.t0);
  if (t1) text += line(", T1 part %.2e%s", k.t1, k.ambiguous ? ", rounding ambiguous" : "");
  return text;
}

} // namespace

Explanation explain_element(const RowProblem &problem, int dim) {
  const RowReference row = attention_row(problem);
  Explanation e;
  e.dim = dim;
  e.empty = row.empty;
  e.claim = row.claim;
  e.no_claim_reason = row.no_claim_reason;
  if (row.empty || !row.claim) return e;
  if (dim < 0) {
    e.exact = row.lse;
    e.t0.total = row.lse_budget;
  } else {
    const auto at = static_cast<size_t>(dim);
    e.exact = row.o[at];
    e.t0 = row.t0[at];
    e.has_t1 = row.t1.applies();
    e.has_t2 = row.t2.applies();
    if (e.has_t1) e.replayed = row.t1.o[at], e.t1 = row.t1.budget[at];
    if (e.has_t2) e.bit_replayed = row.t2.o[at], e.t2 = row.t2.budget[at];
    e.ambiguous_fraction = row.t1.ambiguous_fraction;
  }
  RowWork work;
  prepare_row(problem, work);
  const std::vector<KeyInfluence> keys = influences(problem, work, dim, e);
  e.by_weight = largest(keys, [](const KeyInfluence &k) { return k.weight; });
  const bool replay = e.has_t1 && e.t1.total < e.t0.total;
  e.by_budget = largest(keys, [&](const KeyInfluence &k) { return replay ? k.t1 : k.t0; });
  return e;
}

std::string format_explanation(const Explanation &e) {
  if (e.empty) return "no keys: O must be exactly 0 and LSE exactly -inf";
  if (!e.claim) return "no claim: " + e.no_claim_reason;
  std::string text;
  if (e.dim < 0) {
    text = line("LSE: reference %.9g +- %.1e, bound %.3e", e.exact.mid, e.exact.rad, e.t0.total);
  } else {
    text = budget_text("T0 (any order)", e.exact, e.t0);
  }
  if (e.has_t1) {
    text += "\n" + budget_text("T1 (rounding replay)", e.replayed, e.t1) +
            line("\n    keys with ambiguous rounding: %.2f %%", 100 * e.ambiguous_fraction);
  }
  if (e.has_t2) text += "\n" + budget_text("T2 (bit replay)", e.bit_replayed, e.t2);
  text += "\n  largest weights:";
  for (const KeyInfluence &k : e.by_weight)
    text += key_text(k, e.has_t1);
  text += "\n  largest parts of the budget:";
  for (const KeyInfluence &k : e.by_budget)
    text += key_text(k, e.has_t1);
  return text;
}

} // namespace assay::oracle
