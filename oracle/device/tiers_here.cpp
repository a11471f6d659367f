// SPDX-License-Identifier: Apache-2.0
// The GPU's text of every tier, run by one thread: what a GPU has MMAs for, in loops.
#include <algorithm>
#include <cmath>
#include <stdexcept>

#include "oracle/device/groups_verdict.h"
#include "oracle/device/one_thread.h"

namespace assay::oracle {
namespace {

/// The steps of one launch over groups.
class GroupSteps {
public:
  explicit GroupSteps(const device::GroupCall &call) : call_(call), base_(call.base) {}

  /// `start(pair)` and `score(unit, pair)` of the round.
  template <class Start, class Score>
  void run(Start start, Score score) {
    for (int p = 0; p < pairs(); ++p)
      start(p);
    each_unit(score);
    for (int p = 0; p < pairs(); ++p)
      join_logits(call_, p);
    if (base_.replays != 0)
      sum<true>();
    else
      sum<false>();
  }
  void run() {
    run([&](int p) { start_pair(call_, team_, p); }, [&](int unit, int p) { score(unit, p); });
  }
  /// Behind `first`, with the kernel's own scores.
  void run_behind(const device::GroupCall &first) {
    run([&](int p) { start_exact_pair(call_, first, team_, p); },
        [&](int unit, int p) { score_exactly(unit, p); });
  }
  void judge() {
    for (int p = 0; p < pairs(); ++p)
      if (base_.replays != 0)
        judge_pair<true>(call_, team_, p, call_.elements);
      else
        judge_pair<false>(call_, team_, p, call_.elements);
  }

private:
  int pairs() const { return call_.num_groups * device::kGroupPairs; }
  bool claimed(int p) const { return call_.pairs[p].row >= 0 && call_.pairs[p].claim != 0; }

  template <bool kReplays>
  void sum() {
    const device::OneThreadLanes lanes;
    each_stripe([&](int p, int stripe) {
      look_at_keys<kReplays>(call_, team_, lanes, call_.pairs[p], stripe,
                             call_.weights[int64_t{p} * call_.stripes + stripe]);
    });
    each_claimed([&](int p) { join_weights(call_, p, call_.pairs[p]); });
    if constexpr (kReplays) {
      each_claimed([&](int p) { scan_tiles(call_, team_, lanes, call_.pairs[p]); });
      each_stripe([&](int p, int stripe) {
        device::PairWork &pair = call_.pairs[p];
        replay_keys(call_, team_, lanes, pair, pair.numbers, stripe,
                    call_.replays[int64_t{p} * call_.stripes + stripe]);
      });
    } else if (base_.subnormal != 0) {
      each_stripe([&](int p, int stripe) { weigh_keys(call_, lanes, call_.pairs[p], stripe); });
    }
    each_unit([&](int unit, int p) { sum_values<kReplays>(unit, p); });
    each_claimed([&](int p) {
      join_columns<kReplays>(call_, team_, p, call_.pairs[p]);
      aim_along_error(call_, team_, p, call_.pairs[p]);
    });
    each_unit([&](int unit, int p) { sum_along(unit, p); });
    each_unit([&](int unit, int p) { sum_around<kReplays>(unit, p); });
    each_claimed([&](int p) { join_around<kReplays>(call_, team_, p); });
  }

  template <class F>
  void each_claimed(F f) {
    for (int p = 0; p < pairs(); ++p)
      if (claimed(p)) f(p);
  }
  template <class F>
  void each_unit(F f) {
    each_claimed([&](int p) {
      const device::KeyGroup &group = call_.groups[p / device::kGroupPairs];
      for (int unit = 0; unit < group.units; ++unit)
        f(group.first_unit + unit, p);
    });
  }
  template <class F>
  void each_stripe(F f) {
    each_claimed([&](int p) {
      for (int stripe = 0; stripe < call_.stripes; ++stripe)
        f(p, stripe);
    });
  }

  /// The keys of a unit that a pair sees, counted from the pair's first.
  template <class F>
  void each_key(int unit, int p, F f) const {
    const device::KeyGroup &group = call_.groups[p / device::kGroupPairs];
    const device::PairWork &pair = call_.pairs[p];
    const int begin = group.begin + (unit - group.first_unit) * call_.unit_keys - pair.begin;
    for (int j = std::max(begin, 0); j < std::min(begin + call_.unit_keys, pair.visible); ++j)
      f(pair, j);
  }
  device::ElementPlace place(const device::PairWork &pair, int j, bool value) const {
    const int list = base_.list[pair.row], position = pair.begin + j;
    const KeyRun &run = device::run_among(base_.runs, base_.first_run[list],
                                          base_.first_run[list + 1] - 1, position);
    return device::place_of(base_, run, base_.heads[pair.head].kv_head, position, value);
  }

  /// Logits of a unit's keys: `logit_of(pair, key, logit)` is false where nothing is claimed.
  template <class LogitOf>
  void put_logits(int unit, int p, LogitOf logit_of) {
    device::LogitSums sums;
    bool claim = true;
    each_key(unit, p, [&](const device::PairWork &pair, int j) {
      Logit logit;
      if (!logit_of(pair, j, logit)) {
        claim = false;
        return;
      }
      sums.add(logit);
      store_logit(call_, pair.slots + j, logit);
    });
    call_.logits[call_.unit_pair(unit, p % device::kGroupPairs)] = {sums.x_max, sums.x_abs,
                                                                    sums.x_error, claim};
  }

  void score(int unit, int p) {
    const double least = std::ldexp(1.0, base_.facts.operand.min_exponent);
    put_logits(unit, p, [&](const device::PairWork &pair, int j, Logit &logit) {
      device::GroupScore of{{0.0, 0.0}, 0.0, false, place(pair, j, false)};
      bool finite = true;
      for (int i = 0; i < base_.head_dim; ++i) {
        const double k = of.k.element(base_.kv_dtype, i);
        const double q = device::query_element(base_, pair.row, pair.head, i);
        of.score.value += q * k;
        of.score.magnitude += std::fabs(q * k);
        of.key_size += std::fabs(k);
        finite = finite && std::fabs(k) < HUGE_VAL;
        of.subnormal = of.subnormal || (k != 0.0 && std::fabs(k) < least);
      }
      return finite && device::logit_of(base_, pair, j, of, logit);
    });
  }

  void score_exactly(int unit, int p) {
    const device::PairWork &own = call_.pairs[p];
    block_fma::Operand q[device::kMaxDim];
    for (int i = 0; i < base_.head_dim; ++i)
      q[i] = block_fma::operand(device::query_element(base_, own.row, own.head, i),
                                base_.facts.operand.min_exponent);
    put_logits(unit, p, [&](const device::PairWork &pair, int j, Logit &logit) {
      return exact_logit_of(base_, pair, j, place(pair, j, false), q, logit);
    });
  }

  template <bool kReplays>
  void sum_values(int unit, int p) {
    const double least = std::ldexp(1.0, base_.facts.operand.min_exponent);
    const int64_t at = call_.unit_pair(unit, p % device::kGroupPairs);
    bool finite = true, subnormal = false;
    for (int dim = 0; dim < base_.dims; ++dim) {
      double sums[device::kGroupSums] = {};
      float low = HUGE_VALF, high = -HUGE_VALF;
      each_key(unit, p, [&](const device::PairWork &pair, int j) {
        const float value = place(pair, j, true).element(base_.kv_dtype, dim);
        const double v = value, size = std::fabs(v);
        const auto of = [&](int kind) { return call_.kind(kind)[pair.slots + j] * 0x1p-800; };
        finite = finite && size < HUGE_VAL;
        subnormal = subnormal || (v != 0.0 && size < least);
        low = std::min(low, value);
        high = std::max(high, value);
        const double weight = of(device::kOfWeight), error = of(device::kOfError);
        sums[device::kSumValue] += weight * v;
        sums[device::kSumWide] += (kReplays ? of(device::kOfWide) : weight + error) * size;
        if (base_.subnormal != 0) sums[device::kSumTiny] += of(call_.tiny()) * size;
        if constexpr (!kReplays) return;
        sums[device::kSumRho] += of(device::kOfRho) * v;
        sums[device::kSumRhoSize] += of(device::kOfRho) * size;
        sums[device::kSumDoubt] += of(device::kOfDoubt) * size;
        sums[device::kSumSteps] += of(device::kOfSteps) * size;
      });
      for (int k = 0; k < device::kGroupSums; ++k)
        call_.sums[(at * device::kGroupSums + k) * base_.dims + dim] = sums[k];
      call_.ranges[2 * at * base_.dims + dim] = low;
      call_.ranges[(2 * at + 1) * base_.dims + dim] = high;
    }
    for (int part = 0; part < call_.value_parts(); ++part)
      call_.value_part(unit, p % device::kGroupPairs, part) = {finite, subnormal};
  }

  void sum_along(int unit, int p) {
    const device::PairWork &own = call_.pairs[p];
    if (own.aimed == 0) return; // as the round with the kernel's own scores finds all pairs
    device::AlongSums sums;
    const device::AlongScale scale(call_, own);
    each_key(unit, p, [&](const device::PairWork &pair, int j) {
      const device::ElementPlace v = place(pair, j, true);
      double value = 0.0;
      for (int dim = 0; dim < base_.dims; ++dim)
        value += call_.columns[int64_t{p} * base_.dims + dim].error *
                 static_cast<double>(v.element(base_.kv_dtype, dim));
      add_along(pair, scale, along_key(call_, pair.slots + j), value, sums);
    });
    call_.along[call_.unit_pair(unit, p % device::kGroupPairs)] = sums;
  }

  template <bool kReplays>
  void sum_around(int unit, int p) {
    const int64_t at = call_.unit_pair(unit, p % device::kGroupPairs);
    for (int dim = 0; dim < base_.dims; ++dim) {
      const device::PairColumn &column = call_.columns[int64_t{p} * base_.dims + dim];
      double around = 0.0, replayed = 0.0;
      each_key(unit, p, [&](const device::PairWork &pair, int j) {
        const double v = place(pair, j, true).element(base_.kv_dtype, dim);
        const auto of = [&](int kind) { return call_.kind(kind)[pair.slots + j] * 0x1p-800; };
        const double error = of(device::kOfError); // products apart, as the host's loops have them
        around += std::fabs(error * v - error * column.mid);
        if constexpr (kReplays)
          replayed +=
              std::fabs(of(device::kOfRescale) * v - of(device::kOfMass) * column.replayed.value);
      });
      call_.centered[2 * at * base_.dims + dim] = around;
      call_.centered[(2 * at + 1) * base_.dims + dim] = replayed;
    }
  }

  const device::GroupCall &call_;
  const device::Call &base_;
  device::OneThread team_;
};

} // namespace

TierReport judge_tiers_here(const AttentionRows &rows, const CallOutputs &outputs,
                            const KernelModel &model, const JudgeOptions &options) {
  if (const std::string reason = tiers_refuse(rows, model); !reason.empty())
    throw std::invalid_argument("tiers: " + reason);
  // As a GPU, but calls are large sooner, and take several launches, units and stripes.
  constexpr int64_t kLeastLarge = 1 << 14;
  constexpr device::GroupSizes kLarge{int64_t{4} << 20, 8, 1, device::kGroupPairs, 8};
  const device::GroupSizes sizes =
      device::keys_of_pairs(rows) >= kLeastLarge ? kLarge : device::undivided(device::kGroupPairs);
  const device::CallArrays arrays = device::arrays_of(rows, model, options);
  const device::GroupPlan plan = device::plan_groups(rows, arrays, sizes);
  device::GroupCall call =
      device::make_group_call(rows, outputs, model, arrays, plan, device::in_place);
  device::Results results(call.base.pairs, rows.out.dims, options.elements);
  results.pass_to(call.base);
  for (const device::GroupWave &wave : plan.waves) {
    std::vector<std::vector<unsigned char>> memory;
    place_wave(call, wave, plan.groups.data(), 1,
               [&](size_t bytes) { return memory.emplace_back(bytes + 1).data(); });
    GroupSteps(call).run();
    if (call.base.replay_scores != 0) {
      const device::GroupCall exact = call.exact_round();
      GroupSteps(exact).run_behind(call);
    }
    GroupSteps(call).judge();
  }
  return results.report(rows.out, outputs.lse != nullptr);
}

} // namespace assay::oracle
