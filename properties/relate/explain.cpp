// SPDX-License-Identifier: Apache-2.0
#include "properties/relate/explain.h"

#include <algorithm>
#include <cmath>

#include <fmt/format.h>

#include "properties/relate/budget.h"
#include "properties/relate/keys.h"
#include "properties/relate/outcome.h"

namespace assay {
namespace {

struct Weighted {
  std::string name;
  double logit; ///< natural units
};

std::vector<Weighted> keys_of(const Tensors &t, int row, int head) {
  const Problem &p = t.problem;
  std::vector<Weighted> out;
  int kv_head = head / p.group_size;
  double cap = softcap(p), scale = double(sm_scale(p)) * t.key_scale(kv_head);
  for (const VisibleRun &run : visible_runs(t, row))
    for (int k = run.begin; k < run.end; ++k) {
      double dot = 0;
      for (int i = 0; i < p.head_dim; ++i)
        dot += double(t.value(t.q, row, head, i)) * t.key_value(run.cache, run.row, k, kv_head, i);
      double logit = dot * scale;
      if (cap > 0) logit = cap * std::tanh(logit / cap);
      if (t.slopes >= 0) logit += t.scalar(t.slopes, head) * key_distance(p, row, k);
      const CacheView &c = t.caches[run.cache];
      std::string where = fmt::format("key {} (page {} slot {})", k,
                                      c.physical[run.row][k / c.page_size], k % c.page_size);
      if (t.caches.size() > 1)
        where = fmt::format("level {} segment {} ", run.cache, run.row) + where;
      out.push_back({where, logit});
    }
  if (!std::isinf(t.sink(head))) out.push_back({"sink", t.sink(head)});
  return out;
}

std::vector<Weighted> states_of(const Tensors &t, int row, int head) {
  std::vector<Weighted> out;
  double to_natural = t.problem.lse_base == LseBase::kBase2 ? 0.6931471805599453 : 1;
  auto add = [&](int side, int state, const std::string &name) {
    out.push_back({name, t.value(t.in_lse[side], state, head) * to_natural});
  };
  if (t.problem.family == Family::kMergeState) {
    add(0, row, "state a");
    add(1, row, "state b");
  } else {
    for (int s = t.first_state[row]; s < t.first_state[row + 1]; ++s)
      add(0, s, fmt::format("state {}", s - t.first_state[row]));
  }
  return out;
}

std::string heaviest(std::vector<Weighted> items) {
  constexpr size_t kShown = 5;
  double top = -INFINITY, sum = 0;
  for (const Weighted &w : items)
    top = std::max(top, w.logit);
  if (items.empty() || std::isinf(top)) return "  none: the row is empty\n";
  for (const Weighted &w : items)
    sum += std::exp(w.logit - top);
  std::stable_sort(items.begin(), items.end(),
                   [](const Weighted &a, const Weighted &b) { return a.logit > b.logit; });
  std::string text;
  for (size_t i = 0; i < std::min(kShown, items.size()); ++i)
    text += fmt::format("  {:<34} logit {:>12.6g}  weight {:.6g}\n", items[i].name, items[i].logit,
                        std::exp(items[i].logit - top) / sum);
  if (items.size() > kShown) text += fmt::format("  and {} more\n", items.size() - kShown);
  return text;
}

} // namespace

std::string explain_run(const Outcome &run, Sut &sut) {
  const Problem &p = run.before.problem;
  if (p.batch == 0) return "no rows\n";
  const CheckResult result = inside_budget(run, sut);
  std::string text = result.detail;
  const int row = result.row, head = result.head;
  text += fmt::format("largest weights of row {} head {}:\n", row, head);
  return text + heaviest(is_attention(p) ? keys_of(run.before, row, head)
                                         : states_of(run.before, row, head));
}

} // namespace assay
