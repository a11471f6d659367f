// SPDX-License-Identifier: Apache-2.0
#include "oracle/judge/order_search.h"

#include <algorithm>
#include <cmath>
#include <iterator>
#include <numeric>
#include <tuple>

#include "oracle/bounds/replay.h"
#include "oracle/bounds/row_work.h"
#include "oracle/judge/order_residual.h"

namespace assay::oracle {
namespace {

constexpr size_t kSample = 4; ///< heads of a row that orders are ranked by
constexpr size_t kTried = 8;  ///< orders that are held to T1, the best of a ranking
constexpr size_t kTriedOfAll = 16;

/// What one output is off by T1; below 0: nothing is claimed.
double ratio_outside(const Enclosure &reference, const BudgetTerms &budget, float got,
                     bool &outside) {
  if (budget.overflow_possible || !std::isfinite(budget.total)) return -1.0;
  const double distance = std::fabs(static_cast<double>(got) - reference.mid);
  const double slack = reference.rad + 0x1p-50 * (std::fabs(reference.mid) + budget.total);
  outside = distance - slack > budget.total;
  return distance / budget.total;
}

PairByOrder compare(const ReplayedRow &row, const Written &got, int at_row, int head) {
  PairByOrder pair;
  for (size_t i = 0; row.applies() && i < row.o.size(); ++i) {
    bool outside = false;
    const double ratio = ratio_outside(row.o[i], row.budget[i], got.o[i], outside);
    if (ratio < 0.0) continue;
    pair.applies = true;
    if (!outside) continue;
    ++pair.outside;
    if (ratio <= pair.worst.ratio) continue;
    pair.worst = {.request = at_row,
                  .head = head,
                  .dim = static_cast<int>(i),
                  .tier = 1,
                  .got = got.o[i],
                  .reference = row.o[i],
                  .budget = row.budget[i],
                  .ratio = ratio,
                  .verdict = Verdict::kOutside,
                  .reason = Reason::kNoKnownOrder};
  }
  pair.explained = pair.applies && pair.outside == 0;
  return pair;
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

private:
  const size_t most_;
  std::vector<std::pair<double, TileOrder>> orders_;
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
  return compare(replay_row(problem, work), got, row, head);
}

void OrderSearch::add_heads(int row, const Heads &heads, RowByOrder &by) {
  const TileOrder order = order_of(*by.rule, range_of(row));
  for (int head : heads)
    by.heads[static_cast<size_t>(head)] = by_order(row, head, order);
}

RowByOrder OrderSearch::by_rule(int row, const Heads &heads, const OrderRule &rule) {
  RowByOrder by{rule, std::vector<PairByOrder>(static_cast<size_t>(rows_.out.heads))};
  add_heads(row, heads, by);
  return by;
}

RowByOrder OrderSearch::by_rules(int row, std::span<const OrderRule> rules) {
  const Heads heads = heads_of(row), sample = spread(heads, kSample);
  RowByOrder tried;
  for (const OrderRule &rule : rules) {
    tried = by_rule(row, sample, rule);
    if (tried.pairs() == 0 || tried.explained() < tried.pairs()) continue;
    Heads others;
    std::set_difference(heads.begin(), heads.end(), sample.begin(), sample.end(),
                        std::back_inserter(others));
    add_heads(row, others, tried);
    return tried;
  }
  tried.rule.reset();
  return tried;
}

bool OrderSearch::explains_sample(int row, std::span<const OrderRule> rules) {
  const Heads sample = spread(heads_of(row), kSample);
  return std::any_of(rules.begin(), rules.end(), [&](const OrderRule &rule) {
    const RowByOrder tried = by_rule(row, sample, rule);
    return tried.pairs() > 0 && tried.explained() == tried.pairs();
  });
}

/// Of the known orders that rank best, the one that explains the most of the sample, and at least
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

bool OrderSearch::any_explains(int row, int head, const OrderRule &rule) {
  const ListRange range = range_of(row);
  Best best(kTriedOfAll);
  {
    const RowProblem &problem = reader_.problem(row, head);
    RowWork work;
    if (!prepare_row(problem, work).empty()) return true; // nothing is known of it
    const Written got = read_outputs(rows_.out, outputs_, {}, row, head);
    OrderResidual residual(problem, work, got.o);
    const auto rank = [&](const TileOrder &order) { best.add(residual.of(order), order); };
    for (const OrderRule &known : known_orders(model_.arithmetic, range.length))
      rank(order_of(known, range));
    near_orders(rule, range, rank);
  }
  return std::any_of(best.orders().begin(), best.orders().end(), [&](const auto &entry) {
    return by_order(row, head, entry.second).explained;
  });
}

} // namespace assay::oracle
