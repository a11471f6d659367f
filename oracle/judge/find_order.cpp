// SPDX-License-Identifier: Apache-2.0
#include "oracle/judge/find_order.h"

#include <algorithm>
#include <map>

#include "oracle/bounds/row_work.h"
#include "oracle/judge/judge_entry.h"
#include "oracle/judge/order_search.h"

namespace assay::oracle {
namespace {

constexpr size_t kAnchors = 4;       ///< rows whose orders are tried on the others first
constexpr size_t kOwnSearches = 32;  ///< of rows that none of those explains
constexpr size_t kFullSearches = 16; ///< of pairs that may become doubts
constexpr int kOthers = 7;           ///< heads of a row that must know its order beside one's own
constexpr int kOthersOfKvHead = 3;   ///< heads of its kv head

/// T1 needs weights that are rounded, and positions of keys: those that a mask shows lost them.
bool worth_a_search(const AttentionRows &rows, const KernelModel &model) {
  if (model.order || rows.levels > 1 || !rows.span.empty()) return false;
  return model_of(common_problem(rows, model), rows.head_dim).replays_p;
}

/// The longest row, the first, and others spread evenly.
std::vector<int> anchors_of(const AttentionRows &rows, std::span<const int> chosen) {
  const std::vector<int> all(chosen.begin(), chosen.end());
  std::vector<int> anchors{*std::max_element(
      all.begin(), all.end(), [&](int a, int b) { return rows.keys(a) < rows.keys(b); })};
  for (int row : spread(all, kAnchors))
    if (row != anchors.front() && anchors.size() < kAnchors) anchors.push_back(row);
  return anchors;
}

/// The rows of a call, each by its own order.
class Rows {
public:
  Rows(const AttentionRows &rows, const CallOutputs &outputs, const KernelModel &model,
       std::span<const int> chosen, const std::vector<RowHead> &outside, int threads)
      : rows_(rows), outputs_(outputs), model_(model), chosen_(chosen), outside_(outside),
        threads_(threads), by_(chosen.size()) {}

  void search() {
    const std::vector<OrderRule> rules = rules_of_anchors();
    if (rules.empty()) return;
    each(chosen_.size(),
         [&](OrderSearch &search, size_t i) { by_[i] = search.by_rules(chosen_[i], rules); });
    std::vector<size_t> others;
    for (size_t i = 0; i < by_.size() && others.size() < kOwnSearches; ++i)
      if (!by_[i].rule && by_[i].pairs() > 0) others.push_back(i);
    each(others.size(), [&](OrderSearch &search, size_t i) {
      by_[others[i]] = search.by_search(chosen_[others[i]]);
    });
  }

  FoundOrder found() {
    FoundOrder found = count();
    // As in a row, the one in doubt says nothing of the others.
    if (found.state != OrderState::kFound || 10 * found.explained < 9 * (found.pairs - 1))
      return found;
    struct Doubt {
      size_t row;
      int head;
    };
    std::vector<Doubt> doubts;
    for (size_t i = 0; i < by_.size(); ++i)
      for (int head = 0; by_[i].rule && head < rows_.out.heads; ++head)
        if (stands_alone(by_[i], head) && doubts.size() < kFullSearches)
          doubts.push_back({i, head});
    std::vector<char> explained(doubts.size(), 0);
    each(doubts.size(), [&](OrderSearch &search, size_t i) {
      const RowByOrder &row = by_[doubts[i].row];
      explained[i] = search.any_explains(chosen_[doubts[i].row], doubts[i].head, *row.rule);
    });
    for (size_t i = 0; i < doubts.size(); ++i) {
      if (explained[i]) continue;
      ++found.doubts;
      const Doubt &at = doubts[i];
      const double ratio = by_[at.row].heads[static_cast<size_t>(at.head)].worst;
      if (found.doubt_row >= 0 && ratio <= found.doubt_ratio) continue;
      found.doubt_row = chosen_[at.row];
      found.doubt_head = at.head;
      found.doubt_ratio = ratio;
    }
    return found;
  }

private:
  template <class Body>
  void each(size_t tasks, Body body) {
    on_threads(tasks, threads_, [&](size_t task) {
      OrderSearch search(rows_, outputs_, model_, outside_);
      body(search, task);
    });
  }

  std::vector<OrderRule> rules_of_anchors() {
    OrderSearch search(rows_, outputs_, model_, outside_);
    std::vector<OrderRule> rules;
    for (int anchor : anchors_of(rows_, chosen_)) {
      if (search.explains_sample(anchor, rules)) continue;
      const RowByOrder row = search.by_search(anchor);
      looked_at_ = looked_at_ || row.pairs() > 0;
      if (row.rule) rules.push_back(*row.rule);
    }
    return rules;
  }

  FoundOrder count() const {
    FoundOrder found;
    if (looked_at_) found.state = OrderState::kNone;
    std::map<int, OrderRule> of; // by the first row that has it
    std::map<int, int> times;
    for (size_t i = 0; i < by_.size(); ++i) {
      const RowByOrder &row = by_[i];
      if (row.pairs() == 0) continue;
      ++found.rows;
      found.pairs += static_cast<uint64_t>(row.pairs());
      if (!row.rule) continue;
      found.explained += static_cast<uint64_t>(row.explained());
      const auto same = std::find_if(of.begin(), of.end(),
                                     [&](const auto &entry) { return entry.second == *row.rule; });
      const int key = same != of.end() ? same->first : static_cast<int>(i);
      of.emplace(key, *row.rule);
      ++times[key];
    }
    if (of.empty()) return found;
    const auto most =
        std::max_element(times.begin(), times.end(),
                         [](const auto &a, const auto &b) { return a.second < b.second; });
    found.state = OrderState::kFound;
    found.rule = of[most->first];
    found.rows_by_rule = most->second;
    for (const auto &[key, rows] : times)
      found.rows_otherwise += key == most->first ? 0 : rows;
    const OrderSearch search(rows_, outputs_, model_, outside_);
    for (size_t i = 0; i < by_.size(); ++i)
      if (by_[i].rule && *by_[i].rule == found.rule)
        found.splits =
            std::max(found.splits, splits_of(found.rule, search.range_of(chosen_[i]).length));
    return found;
  }

  /// Whether the rest of the row knows its order, and this head is not explained by it. Schedulers
  /// of equal work cut kv heads apart: all others of its own must know the order.
  bool stands_alone(const RowByOrder &row, int head) const {
    const PairByOrder &own = row.heads[static_cast<size_t>(head)];
    if (!own.applies || own.explained) return false;
    const int others = row.pairs() - 1;
    if (others < kOthers || 10 * row.explained() < 9 * others) return false;
    int group = 0, explained = 0;
    for (int h = 0; h < rows_.out.heads; ++h) {
      const PairByOrder &pair = row.heads[static_cast<size_t>(h)];
      if (h == head || kv_head(h) != kv_head(head) || !pair.applies) continue;
      ++group;
      explained += pair.explained ? 1 : 0;
    }
    return group >= kOthersOfKvHead && explained == group;
  }

  int kv_head(int head) const { return rows_.heads[static_cast<size_t>(head)].kv_head; }

  const AttentionRows &rows_;
  const CallOutputs &outputs_;
  const KernelModel &model_;
  const std::span<const int> chosen_;
  const std::vector<RowHead> &outside_;
  const int threads_;
  std::vector<RowByOrder> by_; ///< of each row in chosen_
  bool looked_at_ = false;
};

} // namespace

FoundOrder find_orders(const AttentionRows &rows, const CallOutputs &outputs,
                       const KernelModel &model, std::span<const int> chosen,
                       const std::vector<RowHead> &outside, int threads) {
  if (chosen.empty() || !worth_a_search(rows, model)) return {};
  Rows all(rows, outputs, model, chosen, outside, threads);
  all.search();
  return all.found();
}

} // namespace assay::oracle
