// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <cmath>
#include <functional>

#include "oracle/device/tiers.h"

namespace assay::oracle {

TierReport report_of(const RowOutputs &out, bool has_lse, std::vector<TierRow> pairs,
                     std::span<const uint64_t> budgets) {
  TierReport report;
  const int heads = out.heads;
  const auto elements = static_cast<uint64_t>(out.dims) + (has_lse ? 1 : 0);
  for (size_t at = 0; at < pairs.size(); ++at) {
    const TierRow &pair = pairs[at];
    const RowHead where{static_cast<int>(at) / heads, static_cast<int>(at) % heads};
    if (pair.inside == 0) {
      report.open.push_back(where);
      if (pair.claims != 0) report.doubtful.push_back(where);
      continue;
    }
    const auto ratio = [&](int i) { return pair.worst[i] < 0.0 ? NAN : pair.worst[i]; };
    Report row;
    row.elements = row.claimed = elements;
    row.worst_ratio_t0 = pair.worst[0];
    row.worst_ratio_t1 = ratio(1);
    row.worst_ratio_t2 = ratio(2);
    row.worst_ratio_lse = ratio(3);
    row.worst_ratio_row = ratio(4);
    if (pair.near != 0) report.near.push_back(where);
    const TierElement &e = pair.element;
    row.worst = {where.row,   where.head, e.dim,   e.tier,           e.got,
                 e.reference, e.budget,   e.ratio, Verdict::kInside, Reason::kNone};
    report.decided.merge(row);
  }
  std::ranges::stable_sort(report.near, std::greater{}, [&](const RowHead &at) {
    return pairs[static_cast<size_t>(at.row * heads + at.head)].worst[4];
  });
  BudgetSizes sizes;
  sizes.add(budgets.first<BudgetSizes::kCounts>());
  report.decided.budgets = sizes;
  report.budgets.assign(budgets.begin(), budgets.end());
  report.rows = std::move(pairs);
  return report;
}

} // namespace assay::oracle
