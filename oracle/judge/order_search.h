// SPDX-License-Identifier: Apache-2.0
// The order of one row: which of the known ones explains what was written for its heads.
#pragma once

#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "oracle/judge/judge.h"
#include "oracle/judge/known_orders.h"

namespace assay::oracle {

/** One (row, head) by one order. */
struct PairByOrder {
  bool applies = false;   ///< T1 says something about it
  bool explained = false; ///< every output is where T1 by the order allows it
  double worst = 0.0;     ///< the largest error of an output or of the row, in what is allowed
};

/** A row by the order that was found for it. */
struct RowByOrder {
  std::optional<OrderRule> rule; ///< none: no known order explains it
  std::vector<PairByOrder> heads;

  int pairs() const;     ///< about which T1 says something
  int explained() const; ///< of those
};

/** Looks at the rows of a call. One for each thread. */
class OrderSearch {
public:
  OrderSearch(const AttentionRows &rows, const CallOutputs &outputs, const KernelModel &model,
              std::span<const RowHead> outside);

  /// By one of these rules, the first that explains nearly all heads; else without a rule.
  RowByOrder by_rules(int row, std::span<const OrderRule> rules);
  bool explains_sample(int row, std::span<const OrderRule> rules);
  /// By the known order that explains the most of its heads.
  RowByOrder by_search(int row);
  /// Whether some known order explains the pair, or one near `rule` does with others of its kv
  /// head: heads of one kv head have one order.
  bool any_explains(int row, int head, const OrderRule &rule);
  PairByOrder by_order(int row, int head, const TileOrder &order);
  ListRange range_of(int row) const;

private:
  using Heads = std::vector<int>;

  bool judged_already(int row, int head) const;
  bool exact_weights_explain(int row, int head);
  Heads heads_of(int row) const;              ///< those that are no findings already
  Heads with_others(int row, int head) const; ///< some of its kv head, then the head
  RowByOrder by_rule(int row, const Heads &heads, const OrderRule &rule);
  std::optional<OrderRule> best_rule(int row, const Heads &sample);

  const AttentionRows &rows_;
  const CallOutputs outputs_;
  const KernelModel &model_;
  const std::span<const RowHead> outside_;
  std::vector<int> length_; ///< [lists]
  AttentionReader reader_;
};

/** At most so many of a list, spread evenly. */
std::vector<int> spread(const std::vector<int> &all, size_t most);

} // namespace assay::oracle
