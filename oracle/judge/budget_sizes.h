// SPDX-License-Identifier: Apache-2.0
// How wide the allowed distances of a run are beside the outputs themselves.
#pragma once

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdint>

namespace assay::oracle {

/** Budgets relative to |O|, counted by their size: four steps to a power of two. */
class BudgetSizes {
public:
  /** Of an output; one that is exactly 0 has no relative budget. */
  void add(double budget, double output) {
    if (!(std::fabs(output) > 0.0) || std::isnan(budget)) return;
    const double step = kSteps * (std::log2(std::max(budget / std::fabs(output), 0x1p-48)) + 48);
    ++counts_[static_cast<size_t>(std::min(step, double(counts_.size() - 1)))];
  }
  void merge(const BudgetSizes &other) {
    for (size_t i = 0; i < counts_.size(); ++i)
      counts_[i] += other.counts_[i];
  }
  /** To the next step above; 0 without outputs. */
  double median() const {
    uint64_t all = 0, seen = 0;
    for (uint64_t n : counts_)
      all += n;
    if (all == 0) return 0.0;
    size_t at = 0;
    while ((seen += counts_[at]) * 2 < all)
      ++at;
    return std::exp2((static_cast<double>(at) + 1) / kSteps - 48);
  }

private:
  static constexpr double kSteps = 4;
  std::array<uint64_t, 320> counts_{}; // 2^-48 .. 2^32
};

} // namespace assay::oracle
