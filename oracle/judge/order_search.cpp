// SPDX-License-Identifier: Apache-2.0
#include "oracle/judge/order_search.h"

#include <algorithm>
#include <cmath>
#include <numeric>
#include <tuple>

#include "oracle/bounds/replay.h"
#include "oracle/bounds/replay_direction.h"
#include "oracle/bounds/row_work.h"
#include "oracle/judge/order_residual.h"

namespace assay::oracle {
namespace {

constexpr size_t kSample = 4; ///< heads of a row that orders are ranked by
constexpr size_t kTried = 8;  ///< orders that are held to T1, the best of a ranking
constexpr size_t kTriedOfAll = 16;
constexpr double kResidualOfRight = 0.5; ///< more than an order has that a kernel really had: 1/3

/// What one output is off by T1; below 0: nothing is claimed.
double ratio_outside(const Enclosure &reference, const BudgetTerms &budget, float got,
                     bool &outside) {
  if (budget.overflow_possible || !std::isfinite(budget.total)) return -1.0;
  const double distance = std::fabs(static_cast<double>(got) - reference.mid);
  const double slack = reference.rad + 0x1p-50 * (std::fabs(reference.mid) + budget.total);
  outside = distance - slack > budget.total;
  return distance / budget.total;
}

PairByOrder compare(const ReplayedRow &row, const Written &got) {
  PairByOrder pair;
  bool any_outside = false;
  for (size_t i = 0; row.applies() && i < row.o.size(); ++i) {
    bool outside = false;
    const double ratio = ratio_outside(row.o[i], row.budget[i], got.o[i], outside);
    if (ratio < 0.0) continue;
    pair.applies = true;
    pair.worst = std::max(pair.worst, ratio);
    any_outside = any_outside || outside;
  }
  pair.explained = pair.applies && !any_outside;
  return pair;
}

/// An explained pair is none where the row's error as a whole is not.
void hold_to_direction(const RowProblem &problem, const RowWork &work, const ReplayedRow &row,
                       const Written &got, PairByOrder &pair) {
  const double ratio = ratio_along_error(problem, work, row, got.o);
  if (!(ratio > 1.0)) return;
  pair.explained = false;
  pair.worst = std::max(pair.worst, ratio);
}

/// Orders with the smallest residuals so far, ascending.
class Best {
public:
  explicit Best(size_t most) : most_(most) {}

  void add(double residual, const TileOrder &order) {
    if (orders_.size() == most_ && !(residual < orders_.back().first)) return;
    const auto behind =
        std::upper_bound(orders_.begin(), orders_.end(), residual,
                         [](double r, const auto &entry) { return r < entry.first; });
    orders_.insert(behind, {residual, order});
    if (orders_.size() > most_) orders_.pop_back();
  }
  const auto &orders() const { return orders_; }
  /// From here on an order is none of them.
  double limit() const { return orders_.size() < most_ ? INFINITY : orders_.back().first; }

private:
  const size_t most_;
  std::vector<std::pair<double, TileOrder>> orders_;
};

/// A head whose problem outlives the reader's next one.
struct RankedHead {
  explicit RankedHead(const RowProblem &of)
      : keys(*of.keys), q(of.q.begin(), of.q.end()), problem(of) {
    problem.keys = &keys;
    problem.q = q;
  }
  bool start(const Written &got) {
    if (!prepare_row(problem, work).empty()) return false;
    residual.emplace(problem, work, got.o);
    return true;
  }

  const KeySet keys;
  const std::vector<float> q;
  RowProblem problem;
  RowWork work;
  std::optional<OrderResidual> residual;
};

} // namespace

int RowByOrder::pairs() const {
  return static_cast<int>(
      std::count_if(heads.begin(), heads.end(), [](const PairByOrder &p) { return p.applies; }));
}

int RowByOrder::explained() const {
  return static_cast<int>(
      std::count_if(heads.begin(), heads.end(), [](const PairByOrder &p) { return p.explained; }));
}

std::vector<int> spread(const std::vector<int> &all, size_t most) {
  if (all.size() <= most) return all;
  std::vector<int> some;
  for (size_t i = 0; i < most; ++i)
    some.push_back(all[i * (all.size() - 1) / std::max<size_t>(most - 1, 1)]);
  return some;
}

OrderSearch::OrderSearch(const AttentionRows &rows, const CallOutputs &outputs,
                         const KernelModel &model, std::span<const RowHead> outside)
    : rows_(rows), outputs_(outputs), model_(model), outside_(outside),
      length_(static_cast<size_t>(rows.lists()), 0), reader_(rows, model) {
  for (size_t row = 0; row < rows.list.size(); ++row) {
    int &length = length_[static_cast<size_t>(rows.list[row])];
    length = std::max(length, rows.end[row]);
  }
}

ListRange OrderSearch::range_of(int row) const {
  const auto at = static_cast<size_t>(row);
  return {length_[static_cast<size_t>(rows_.list[at])], rows_.begin[at], rows_.end[at]};
}

bool OrderSearch::judged_already(int row, int head) const {
  const auto before = [](const RowHead &a, const RowHead &b) {
    return std::tie(a.row, a.head) < std::tie(b.row, b.head);
  };
  return std::binary_search(outside_.begin(), outside_.end(), RowHead{row, head}, before);
}

OrderSearch::Heads OrderSearch::heads_of(int row) const {
  Heads heads;
  for (int head = 0; head < rows_.out.heads && rows_.keys(row) > 0; ++head)
    if (!judged_already(row, head)) heads.push_back(head);
  return heads;
}

PairByOrder OrderSearch::by_order(int row, int head, const TileOrder &order) {
  RowProblem problem = reader_.problem(row, head);
  TileOrder whole = order;
  if (problem.features.has_sink()) append_sink(whole, static_cast<int>(problem.keys->visible()));
  problem.order = &whole;
  RowWork work;
  if (!problem.keys->finite || !prepare_row(problem, work).empty()) return {};
  const Written got = read_outputs(rows_.out, outputs_, {}, row, head);
  const ReplayedRow replayed = replay_row(problem, work);
  PairByOrder pair = compare(replayed, got);
  if (pair.explained) hold_to_direction(problem, work, replayed, got, pair);
  return pair;
}

RowByOrder OrderSearch::by_rule(int row, const Heads &heads, const OrderRule &rule) {
  RowByOrder by{rule, std::vector<PairByOrder>(static_cast<size_t>(rows_.out.heads))};
  const TileOrder order = order_of(rule, range_of(row));
  for (int head : heads)
    by.heads[static_cast<size_t>(head)] = by_order(row, head, order);
  return by;
}

RowByOrder OrderSearch::by_rules(int row, std::span<const OrderRule> rules) {
  const Heads heads = heads_of(row);
  const int few = std::max(1, static_cast<int>(heads.size()) / 10);
  RowByOrder by{std::nullopt, std::vector<PairByOrder>(static_cast<size_t>(rows_.out.heads))};
  for (const OrderRule &rule : rules) {
    const TileOrder order = order_of(rule, range_of(row));
    std::fill(by.heads.begin(), by.heads.end(), PairByOrder{});
    int missed = 0;
    for (int head : heads) {
      PairByOrder &pair = by.heads[static_cast<size_t>(head)];
      pair = by_order(row, head, order);
      missed += pair.applies && !pair.explained ? 1 : 0;
      if (missed > few) break;
    }
    if (missed > few || 4 * by.explained() < 3 * by.pairs() || by.pairs() == 0) continue;
    by.rule = rule;
    return by;
  }
  return by;
}

bool OrderSearch::explains_sample(int row, std::span<const OrderRule> rules) {
  const Heads sample = spread(heads_of(row), kSample);
  return std::any_of(rules.begin(), rules.end(), [&](const OrderRule &rule) {
    const RowByOrder tried = by_rule(row, sample, rule);
    return tried.pairs() > 0 && tried.explained() == tried.pairs();
  });
}

/// Finds the one of the best-ranked known orders that explains the most of the sample, and at least
/// three quarters of it: one of four heads may be the mistake that is looked for.
std::optional<OrderRule> OrderSearch::best_rule(int row, const Heads &sample) {
  const ListRange range = range_of(row);
  const std::vector<OrderRule> rules = known_orders(model_.arithmetic, range.length);
  std::vector<double> score(rules.size(), 0.0);
  for (int head : sample) {
    const RowProblem &problem = reader_.problem(row, head);
    RowWork work;
    if (!problem.keys->finite || !prepare_row(problem, work).empty()) continue;
    const Written got = read_outputs(rows_.out, outputs_, {}, row, head);
    OrderResidual residual(problem, work, got.o);
    for (size_t i = 0; i < rules.size(); ++i)
      score[i] += std::log1p(residual.of(order_of(rules[i], range)));
  }
  std::vector<size_t> ranked(rules.size());
  std::iota(ranked.begin(), ranked.end(), size_t{0});
  std::stable_sort(ranked.begin(), ranked.end(),
                   [&](size_t a, size_t b) { return score[a] < score[b]; });
  ranked.resize(std::min(ranked.size(), kTried));
  std::optional<OrderRule> best;
  int most = 0;
  for (size_t i : ranked) {
    const RowByOrder tried = by_rule(row, sample, rules[i]);
    const int explained = tried.explained(), pairs = tried.pairs();
    if (4 * explained < 3 * pairs || explained <= most) continue;
    most = explained;
    best = rules[i];
    if (explained == pairs) break;
  }
  return best;
}

RowByOrder OrderSearch::by_search(int row) {
  const Heads heads = heads_of(row);
  const Heads sample = spread(heads, kSample);
  std::optional<OrderRule> rule = best_rule(row, sample);
  if (!rule) {
    RowByOrder none = by_rule(row, sample, {});
    none.rule.reset();
    return none;
  }
  RowByOrder found = by_rule(row, heads, *rule);
  if (10 * found.explained() >= 9 * found.pairs()) return found;
  // An order that fits by chance: the heads that it does not explain know a better one.
  Heads failing;
  for (int head : heads)
    if (const PairByOrder &pair = found.heads[static_cast<size_t>(head)];
        pair.applies && !pair.explained)
      failing.push_back(head);
  rule = best_rule(row, spread(failing, kSample));
  if (!rule) return found;
  RowByOrder other = by_rule(row, heads, *rule);
  return other.explained() > found.explained() ? other : found;
}

OrderSearch::Heads OrderSearch::with_others(int row, int head) const {
  const auto kv_head = [&](int h) { return rows_.heads[static_cast<size_t>(h)].kv_head; };
  Heads others;
  for (int h : heads_of(row))
    if (h != head && kv_head(h) == kv_head(head)) others.push_back(h);
  others = spread(others, kSample - 1);
  others.push_back(head); // behind those that tell most orders off at once
  return others;
}

/// Weights that were not rounded, though the arithmetic says so, have no order to be told from.
bool OrderSearch::exact_weights_explain(int row, int head) {
  RowProblem problem = reader_.problem(row, head);
  problem.arithmetic.p_format = problem.arithmetic.sum_format = ASSAY_FORMAT_FP32;
  problem.arithmetic.p_scale_log2 = 0;
  const Written got = read_outputs(rows_.out, outputs_, {}, row, head);
  return judge_row(problem, attention_row(problem), got.o.data(), nullptr, row, head).verdict !=
         Verdict::kOutside;
}

bool OrderSearch::any_explains(int row, int head, const OrderRule &rule) {
  const ListRange range = range_of(row);
  const Heads heads = with_others(row, head);
  std::vector<std::unique_ptr<RankedHead>> ranked;
  for (int h : heads) {
    ranked.push_back(std::make_unique<RankedHead>(reader_.problem(row, h)));
    if (!ranked.back()->start(read_outputs(rows_.out, outputs_, {}, row, h)))
      return true; // nothing is known of it
  }
  double exact = 0.0, found = 0.0; // of the others
  for (size_t i = 0; i + 1 < ranked.size(); ++i) {
    exact += ranked[i]->residual->of({});
    found += ranked[i]->residual->of(order_of(rule, range));
  }
  if (found > kResidualOfRight * static_cast<double>(ranked.size() - 1)) return true;
  // Weights that were not rounded fit better as they are.
  if (exact <= found &&
      std::all_of(heads.begin(), heads.end(), [&](int h) { return exact_weights_explain(row, h); }))
    return true;
  Best together(kTriedOfAll), alone(kTriedOfAll);
  const auto rank = [&](const TileOrder &order) {
    double sum = 0.0;
    for (const auto &one : ranked)
      if (sum < together.limit()) sum += std::log1p(one->residual->of(order));
    together.add(sum, order);
  };
  for (const OrderRule &known : known_orders(model_.arithmetic, range.length)) {
    const TileOrder order = order_of(known, range);
    rank(order);
    alone.add(ranked.back()->residual->of(order), order);
  }
  near_orders(rule, range, rank);
  const auto explains = [&](const TileOrder &order, const Heads &all) {
    return std::all_of(all.begin(), all.end(),
                       [&](int h) { return by_order(row, h, order).explained; });
  };
  return std::any_of(alone.orders().begin(), alone.orders().end(),
                     [&](const auto &entry) { return explains(entry.second, {head}); }) ||
         std::any_of(together.orders().begin(), together.orders().end(),
                     [&](const auto &entry) { return explains(entry.second, heads); });
}

} // namespace assay::oracle
