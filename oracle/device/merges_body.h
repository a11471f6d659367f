// SPDX-License-Identifier: Apache-2.0
// Internal: a merge of one (row, head), by a team of threads (team.cuh); Lanes, a part of it, work
// on one state.
#pragma once

#include "oracle/device/call_rows.h"
#include "oracle/device/elements.h"
#include "oracle/device/merges_call.h"
#include "oracle/device/row_along.h"

namespace assay::oracle::device {

template <class Team, class Lanes>
class MergeBody {
public:
  ORACLE_HOST_DEVICE MergeBody(const MergeCall &call, Team &team, int number)
      : call_(call), team_(team), weight_(call.scratch + number * call.team_scratch()),
        omega_(weight_ + call.most_states), error_(omega_ + call.most_states) {}

  ORACLE_HOST_DEVICE void run(int64_t pair) {
    pair_ = pair;
    row_ = static_cast<int>(pair / call_.heads);
    head_ = static_cast<int>(pair % call_.heads);
    states_ = static_cast<int>(call_.first[row_ + 1] - call_.first[row_]);
    worst_o_ = worst_lse_ = -1.0;
    best_ = TierElement{};
    whole_ = {};
    if (!weigh())
      open_ = true;
    else if (numbers_.states == 0.0)
      judge_empty();
    else
      judge_live();
    finish();
  }

private:
  ORACLE_HOST_DEVICE bool first() const { return team_.rank() == 0; }

  ORACLE_HOST_DEVICE const StoredState &state(int s) const {
    return call_.states[call_.first[row_] + s];
  }
  ORACLE_HOST_DEVICE float lse_of(int s) const {
    const StateArray &array = call_.arrays[state(s).array];
    return array.lse[state(s).lse_at + head_ * array.lse_stride_head];
  }
  ORACLE_HOST_DEVICE int64_t place_of(int s, int dim) const {
    return state(s).o_at + head_ * call_.arrays[state(s).array].out_stride_head + dim;
  }
  ORACLE_HOST_DEVICE const unsigned char *values_of(int s) const {
    return static_cast<const unsigned char *>(call_.arrays[state(s).array].o);
  }
  ORACLE_HOST_DEVICE float value_of(int s, int dim) const {
    return load_element(call_.dtype, values_of(s), place_of(s, dim));
  }
  ORACLE_HOST_DEVICE int64_t output_at(int dim) const {
    return call_.o_at[row_] + head_ * call_.out_stride_head + dim;
  }
  ORACLE_HOST_DEVICE float output_lse() const {
    return call_.lse[call_.lse_at[row_] + head_ * call_.lse_stride_head];
  }

  /// What the live states come to. False: one is not finite.
  ORACLE_HOST_DEVICE bool weigh() {
    numbers_ = MergeNumbers{};
    double top = -HUGE_VAL, live = 0.0, last = -1.0;
    bool finite = true;
    for (int s = team_.rank(); s < states_; s += team_.size()) {
      const double lse = lse_of(s);
      if (lse == -HUGE_VAL) continue;
      finite = finite && fabs(lse) < HUGE_VAL;
      top = fmax(top, lse);
      live += 1.0;
      last = s;
    }
    numbers_.states = team_.sum(live);
    top = numbers_.top = team_.most(top);
    only_ = numbers_.states == 1.0 ? static_cast<int>(team_.most(last)) : -1;
    if (team_.any(!finite)) return false;
    double z = 0.0, error = 0.0, mean = 0.0, low = 0.0, log_omega = 0.0;
    for (int s = team_.rank(); s < states_; s += team_.size()) {
      const double lse = lse_of(s);
      const bool lives = lse > -HUGE_VAL;
      StateWeight weight;
      if (lives) weight = weigh_state(call_.facts, top, lse);
      weight_[s] = lives ? weight.weight : -1.0; // below 0: there is none
      omega_[s] = weight.omega;
      z += weight.weight;
      error += weight.error;
      mean += weight.mean;
      low += weight.low;
      log_omega = fmax(log_omega, weight.log_omega);
    }
    numbers_.z = team_.sum(z);
    error = team_.sum(error);
    mean = team_.sum(mean);
    low = team_.sum(low);
    numbers_.log_omega_max = team_.most(log_omega);
    finish_merge(numbers_, error, mean, low);
    return true;
  }

  /// Without a live state O is 0 and the LSE what the call says; else the host looks.
  ORACLE_HOST_DEVICE void judge_empty() {
    open_ = call_.empty_lse != 0;
    for (int dim = team_.rank(); dim < call_.dims; dim += team_.size())
      take(dim, load_element(call_.dtype, call_.o, output_at(dim)), {}, {}, 0.0f);
    if (call_.lse == nullptr || !first()) return;
    const float lse = output_lse();
    take(call_.dims, lse, {}, {}, -HUGE_VALF);
  }

  ORACLE_HOST_DEVICE void judge_live() {
    joint_ = merged_scalars(call_.facts, numbers_);
    along_ = {};
    own_ = {};
    errs_ = false;
    for (int dim = team_.rank(); dim < call_.dims; dim += team_.size())
      judge_column(dim);
    if (has_joint(numbers_)) judge_along_error();
    if (call_.lse == nullptr || !first()) return;
    Enclosure exact;
    BudgetTerms budget;
    budget.total = merged_lse(call_.facts, numbers_, exact);
    if (only_ >= 0 && bits_of(output_lse()) != bits_of(lse_of(only_))) open_ = true;
    judge(call_.dims, output_lse(), exact, budget);
  }

  ORACLE_HOST_DEVICE void judge_column(int dim) {
    MergeSums sums{};
    for (int s = 0; s < states_; ++s) {
      if (weight_[s] < 0.0) continue;
      const double v = value_of(s, dim), size = fabs(v);
      if (!(size < HUGE_VAL)) open_ = true;
      sums.value += weight_[s] * v;
      sums.plain += weight_[s] * size;
      sums.weighted += weight_[s] * (1.0 + omega_[s]) * size;
      sums.limit = fmax(sums.limit, size);
    }
    const double center = sums.value / numbers_.z;
    for (int s = 0; s < states_; ++s) {
      if (weight_[s] < 0.0) continue;
      const double a = weight_[s] * omega_[s];
      sums.centered += fabs(a * value_of(s, dim) - a * center);
    }
    Enclosure exact;
    BudgetTerms budget = merged_column(call_.facts, numbers_, sums, exact);
    if (only_ >= 0) {
      // Exactly one: its bits come back.
      if (load_bits(call_.dtype, call_.o, output_at(dim)) !=
          load_bits(call_.dtype, values_of(only_), place_of(only_, dim)))
        open_ = true;
      budget.overflow_possible = false;
    }
    judge(dim, load_element(call_.dtype, call_.o, output_at(dim)), exact, budget);
    if (only_ >= 0) return;
    add_along(dim, exact, budget, sums.limit);
    const int count = BudgetSizes::count_of(budget.total, exact.mid);
    if (count >= 0) team_.count(call_.budgets + count);
  }

  /// An element's error, which is a part of the row's direction.
  ORACLE_HOST_DEVICE void add_along(int dim, const Enclosure &exact, const BudgetTerms &budget,
                                    double limit) {
    const double got = load_element(call_.dtype, call_.o, output_at(dim));
    const double error = fabs(got) < HUGE_VAL ? got - exact.mid : 0.0; // else the host looks
    error_[dim] = error;
    errs_ = errs_ || error != 0.0;
    along_.o += error * exact.mid;
    along_.blur += fabs(error) * merged_blur(call_.dims, exact, limit);
    own_.add(error, got, exact, merged_element(joint_, budget));
  }

  ORACLE_HOST_DEVICE void judge_along_error() {
    along_.o = team_.sum(along_.o);
    along_.blur = team_.sum(along_.blur);
    own_.over(team_);
    if (!team_.any(errs_)) return; // and all have written their errors
    along_.elements = own_.elements;
    const Lanes lanes;
    JointSums sums;
    for (int s = lanes.number(); s < states_; s += lanes.count()) {
      if (weight_[s] < 0.0) continue;
      double value = 0.0;
      for (int dim = lanes.rank(); dim < call_.dims; dim += lanes.size())
        value += error_[dim] * static_cast<double>(value_of(s, dim));
      value = lanes.sum(value);
      if (lanes.rank() == 0)
        add_joint_key(joint_, along_, merged_key(numbers_, weight_[s], omega_[s]), value, sums);
    }
    sums.errors = team_.sum(sums.errors);
    sums.farthest = team_.most(sums.farthest);
    sums.moved = team_.most(sums.moved);
    whole_ = ratio_along(own_, call_.dims, joint_terms(joint_, along_, sums));
  }

  ORACLE_HOST_DEVICE void judge(int dim, float got, const Enclosure &exact,
                                const BudgetTerms &budget) {
    const double ratio =
        budget.overflow_possible ? HUGE_VAL : ratio_inside(got, exact, budget.total);
    keep(dim, got, exact, budget, ratio);
    if (call_.elements != nullptr)
      call_.elements[(pair_ * (call_.dims + 1) + dim) * 3] = {
          exact.mid, exact.rad, budget.overflow_possible ? NAN : budget.total};
  }
  ORACLE_HOST_DEVICE void take(int dim, float got, const Enclosure &exact,
                               const BudgetTerms &budget, float wanted) {
    keep(dim, got, exact, budget, got == wanted ? 0.0 : HUGE_VAL);
  }
  ORACLE_HOST_DEVICE void keep(int dim, float got, const Enclosure &exact,
                               const BudgetTerms &budget, double ratio) {
    double &worst = dim == call_.dims ? worst_lse_ : worst_o_;
    worst = fmax(worst, ratio);
    if (!(ratio < HUGE_VAL)) open_ = true;
    if (ratio <= best_.ratio) return;
    best_ = {0, dim == call_.dims ? -1 : dim, got, exact, budget, ratio};
    best_at_ = dim;
  }

  ORACLE_HOST_DEVICE void finish() {
    const bool open = team_.any(open_ || whole_.open());
    const double o = team_.most(worst_o_), lse = team_.most(worst_lse_);
    const double worst = fmax(o, lse);
    const double at = -team_.most(best_.ratio == worst ? -best_at_ : -HUGE_VAL);
    TierRow &result = call_.rows[pair_];
    if (best_.ratio == worst && best_at_ == at) result.element = best_;
    if (first()) {
      result.inside = open ? 0 : 1;
      result.claims = 1;
      result.worst[0] = o;
      result.worst[1] = result.worst[2] = -1.0;
      result.worst[3] = lse;
      result.worst[4] = whole_.ratio;
      result.near = whole_.near ? 1 : 0;
    }
    open_ = false;
    team_.sync();
  }

  const MergeCall &call_;
  Team &team_;
  double *const weight_, *const omega_; ///< [states]
  double *const error_;                 ///< [dims]
  MergeNumbers numbers_;
  JointScalars joint_;
  JointAlong along_;
  AlongError own_; ///< along the error
  RowRatio whole_;
  TierElement best_;
  int best_at_ = 0;
  double worst_o_ = -1.0, worst_lse_ = -1.0;
  int64_t pair_ = 0;
  int row_ = 0, head_ = 0, states_ = 0, only_ = -1;
  bool open_ = false, errs_ = false;
};

} // namespace assay::oracle::device
