// SPDX-License-Identifier: Apache-2.0
// How wide the allowed distances of a run are beside the outputs themselves.
#pragma once

#include <array>
#include <cmath>
#include <cstdint>
#include <span>

#include "oracle/exact/host_device.h"

namespace assay::oracle {

/** Budgets relative to |O|, counted by their size: four steps to a power of two. */
class BudgetSizes {
public:
  static constexpr int kCounts = 320; // 2^-48 .. 2^32

  /** Which count an output's budget raises; -1: one that is exactly 0 has no relative budget. */
  ORACLE_HOST_DEVICE static int count_of(double budget, double output) {
    if (!(fabs(output) > 0.0) || budget != budget) return -1;
    const double step = kSteps * (log2(fmax(budget / fabs(output), 0x1p-48)) + 48);
    return static_cast<int>(fmin(step, kCounts - 1.0));
  }
  void add(double budget, double output) {
    const int count = count_of(budget, output);
    if (count >= 0) ++counts_[static_cast<size_t>(count)];
  }
  void add(std::span<const uint64_t, kCounts> counts) {
    for (size_t i = 0; i < counts_.size(); ++i)
      counts_[i] += counts[i];
  }
  void merge(const BudgetSizes &other) {
    for (size_t i = 0; i < counts_.size(); ++i)
      counts_[i] += other.counts_[i];
  }
  /** The median alone, counted once: of many calls each then counts alike, whatever its size. */
  BudgetSizes typical() const {
    BudgetSizes one;
    if (const size_t at = median_count(); at < kCounts) one.counts_[at] = 1;
    return one;
  }
  /** To the next step above; 0 without outputs. */
  double median() const {
    const size_t at = median_count();
    return at == kCounts ? 0.0 : std::exp2((static_cast<double>(at) + 1) / kSteps - 48);
  }

private:
  static constexpr double kSteps = 4;

  /** Which count has the median; kCounts without outputs. */
  size_t median_count() const {
    uint64_t all = 0, seen = 0;
    for (uint64_t n : counts_)
      all += n;
    if (all == 0) return kCounts;
    size_t at = 0;
    while ((seen += counts_[at]) * 2 < all)
      ++at;
    return at;
  }
  std::array<uint64_t, kCounts> counts_{};
};

} // namespace assay::oracle
