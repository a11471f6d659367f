// SPDX-License-Identifier: Apache-2.0
// Internal: the elements of one (row, head) against what they must be, and what a team leaves of
// the pair. One text for the host and for a GPU.
#pragma once

#include "oracle/device/call_rows.h"
#include "oracle/device/row_along.h"

namespace assay::oracle::device {

template <class Team>
class RowVerdict {
public:
  /// `elements`: [tiers, dims + 1] of the team's own.
  ORACLE_HOST_DEVICE RowVerdict(const Call &call, Team &team, TierElement *elements)
      : call_(call), team_(team), elements_(elements) {}

  ORACLE_HOST_DEVICE void start(int row, int head) {
    row_ = row;
    head_ = head;
    whole_ = {};
    for (int i = team_.rank(); i < call_.tiers() * (call_.dims + 1); i += team_.size())
      elements_[i] = TierElement{};
  }

  ORACLE_HOST_DEVICE TierElement &element(int tier, int dim) const {
    return elements_[tier * (call_.dims + 1) + dim];
  }

  /// Component `dim`, or the LSE behind the last of them.
  ORACLE_HOST_DEVICE void judge(int tier, int dim, const Enclosure &exact,
                                const BudgetTerms &budget) {
    TierElement &own = element(tier, dim);
    const bool lse = dim == call_.dims;
    own.tier = tier;
    own.dim = lse ? -1 : dim;
    own.got = lse ? call_.lse[call_.lse_at[row_] + head_ * call_.lse_stride_head]
                  : load_element(call_.o_dtype, call_.o,
                                 call_.o_at[row_] + head_ * call_.out_stride_head + dim);
    own.reference = exact;
    own.budget = budget;
    own.ratio = budget.overflow_possible ? HUGE_VAL : ratio_inside(own.got, exact, budget.total);
    if (call_.elements == nullptr) return;
    ElementBounds &out = call_.elements[(pair() * (call_.dims + 1) + dim) * kMostTiers + tier];
    out = {exact.mid, exact.rad, budget.overflow_possible ? NAN : budget.total};
  }

  /// An element that no bounds are needed for.
  ORACLE_HOST_DEVICE void take(int tier, int dim, double ratio) {
    TierElement &own = element(tier, dim);
    own.tier = tier;
    own.dim = dim == call_.dims ? -1 : dim;
    own.ratio = ratio;
  }

  ORACLE_HOST_DEVICE void judge_row(const RowRatio &along) { whole_ = along; }

  /// Writes the verdict of the whole team. `open`: some of its threads cannot decide. `claims`:
  /// something is claimed.
  ORACLE_HOST_DEVICE void finish(bool open, bool claims) {
    team_.sync();
    TierRow result;
    result.claims = claims ? 1 : 0;
    const int dims = call_.dims;
    open = team_.any(open);
    double worst = -1.0;
    for (int tier = 0; tier < call_.tiers(); ++tier) {
      result.worst[tier] = worst_of(tier, 0, dims);
      result.worst[3] = fmax(result.worst[3], worst_of(tier, dims, dims + 1));
    }
    for (const double ratio : result.worst)
      worst = fmax(worst, ratio);
    result.worst[4] = whole_.ratio;
    result.near = whole_.near ? 1 : 0;
    open = open || !(worst < HUGE_VAL) || whole_.open();
    if (!open) count_budgets();
    int at = 0; // of the first with the largest ratio
    for (int i = call_.tiers() * (dims + 1) - 1 - team_.rank(); i >= 0; i -= team_.size())
      if (elements_[i].ratio == worst) at = i;
    const bool has = elements_[at].ratio == worst;
    at = static_cast<int>(-team_.most(has ? -at : -HUGE_VAL));
    if (team_.rank() == 0) {
      result.inside = open ? 0 : 1;
      if (!open) result.element = elements_[at];
      call_.rows[pair()] = result;
    }
    team_.sync();
  }

private:
  ORACLE_HOST_DEVICE int64_t pair() const { return int64_t{row_} * call_.num_heads + head_; }

  /// The largest ratio of components or of LSEs in a tier; below 0: there is none.
  ORACLE_HOST_DEVICE double worst_of(int tier, int begin, int end) {
    double worst = -1.0;
    for (int dim = begin + team_.rank(); dim < end; dim += team_.size())
      worst = fmax(worst, element(tier, dim).ratio);
    return team_.most(worst);
  }

  ORACLE_HOST_DEVICE void count_budgets() {
    for (int dim = team_.rank(); dim < call_.dims; dim += team_.size()) {
      double least = HUGE_VAL;
      for (int tier = 0; tier < call_.tiers(); ++tier) {
        const TierElement &own = element(tier, dim);
        if (own.ratio >= 0.0) least = fmin(least, own.budget.total);
      }
      const int count = BudgetSizes::count_of(least, element(0, dim).reference.mid);
      if (count >= 0) team_.count(call_.budgets + count);
    }
  }

  const Call &call_;
  Team &team_;
  TierElement *elements_;
  int row_ = 0, head_ = 0;
  RowRatio whole_; ///< the same in all threads
};

} // namespace assay::oracle::device
