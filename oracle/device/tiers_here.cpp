// SPDX-License-Identifier: Apache-2.0
// The GPU's texts of every tier and of merges, run by one thread.
#include <algorithm>
#include <cmath>
#include <stdexcept>

#include "oracle/device/groups_replay.h"
#include "oracle/device/merges_body.h"
#include "oracle/device/tiers_body.h"

namespace assay::oracle {
namespace {

struct OneThread {
  int rank() const { return 0; }
  int size() const { return 1; }
  void sync() const {}
  double most(double x) const { return x; }
  double sum(double x) const { return x; }
  bool any(bool flag) const { return flag; }
  void count(unsigned long long *at) const { ++*at; }
};

/// A part of a team that works on a tile or a state.
struct OneThreadLanes : OneLane {
  static int number() { return 0; }
  static int count() { return 1; }
  static double most(double x) { return x; }
  static double sum(double x) { return x; }
};

/// What the text leaves, and where.
class Results {
public:
  Results(int64_t pairs, int dims, bool elements)
      : rows(static_cast<size_t>(pairs)), budgets(BudgetSizes::kCounts) {
    constexpr BulkElement kNone{0.0, 0.0, NAN};
    if (elements)
      exported.assign(rows.size() * (static_cast<size_t>(dims) + 1), {kNone, kNone, kNone});
  }

  template <class Call>
  void pass_to(Call &call) {
    static_assert(sizeof(uint64_t) == sizeof(unsigned long long));
    call.rows = rows.data();
    call.budgets = reinterpret_cast<unsigned long long *>(budgets.data());
    if (!exported.empty()) call.elements = exported.data()->data();
  }
  TierReport report(const RowOutputs &out, bool has_lse) {
    TierReport report = report_of(out, has_lse, std::move(rows), budgets);
    report.elements = std::move(exported);
    return report;
  }

  std::vector<TierRow> rows;
  std::vector<uint64_t> budgets;
  std::vector<std::array<BulkElement, 3>> exported;
};

const void *in_place(const void *from, size_t) { return from; }

/// The steps of one launch over groups: what a GPU has MMAs for, in loops.
class GroupSteps {
public:
  explicit GroupSteps(const device::GroupCall &call) : call_(call), base_(call.tiers.base) {}

  void run() {
    const int pairs = call_.num_groups * device::kGroupPairs;
    for (int p = 0; p < pairs; ++p)
      start_pair(call_, team_, p);
    each_unit([&](int unit, int p) { score(unit, p); });
    for (int p = 0; p < pairs; ++p)
      join_logits(call_, p);
    each_stripe(&GroupSteps::look);
    each_claimed([&](int p) { scan_tiles(call_, team_, OneThreadLanes{}, p, call_.pairs[p]); });
    each_stripe(&GroupSteps::replay);
    each_unit([&](int unit, int p) { sum_values(unit, p); });
    each_claimed([&](int p) { join_columns(call_, team_, p, call_.pairs[p]); });
    each_unit([&](int unit, int p) { sum_around(unit, p); });
    for (int p = 0; p < pairs; ++p)
      judge_pair(call_, team_, p, call_.elements);
  }

private:
  bool claimed(int p) const { return call_.pairs[p].row >= 0 && call_.pairs[p].claim != 0; }

  template <class F>
  void each_claimed(F f) {
    for (int p = 0; p < call_.num_groups * device::kGroupPairs; ++p)
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
  void each_stripe(void (GroupSteps::*f)(int, int)) {
    each_claimed([&](int p) {
      for (int stripe = 0; stripe < call_.stripes; ++stripe)
        (this->*f)(p, stripe);
    });
  }
  void look(int p, int stripe) {
    look_at_keys(call_, team_, OneThreadLanes{}, call_.pairs[p], stripe,
                 call_.weights[int64_t{p} * call_.stripes + stripe]);
  }
  void replay(int p, int stripe) {
    device::PairWork &pair = call_.pairs[p];
    replay_keys(call_, team_, OneThreadLanes{}, pair, pair.numbers, stripe,
                call_.replays[int64_t{p} * call_.stripes + stripe]);
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
  const unsigned char *place(const device::PairWork &pair, int j, bool value) const {
    const int list = call_.tiers.list[pair.row], position = pair.begin + j;
    const KeyRun &run = device::run_among(base_.runs, base_.first_run[list],
                                          base_.first_run[list + 1] - 1, position);
    const device::DevicePool &pool = base_.pools[run.pool];
    const int64_t slot = position - run.position, kv_head = base_.heads[pair.head].kv_head;
    const int64_t bytes = device::bytes_of(base_.kv_dtype);
    return value ? pool.v + (run.v_at + slot * pool.v_stride_token + kv_head * pool.v_stride_head) *
                                bytes
                 : pool.k + (run.k_at + slot * pool.k_stride_token + kv_head * pool.k_stride_head) *
                                bytes;
  }

  void score(int unit, int p) {
    const double least = std::ldexp(1.0, base_.facts.operand.min_exponent);
    device::LogitSums sums;
    bool claim = true;
    each_key(unit, p, [&](const device::PairWork &pair, int j) {
      const int64_t q_at = base_.q_at[pair.row] + pair.head * base_.q_stride_head;
      device::GroupScore of{{0.0, 0.0}, 0.0, false, place(pair, j, false)};
      bool finite = true;
      each_element(base_, call_.tiers.fp8, of.k, [&](int i, double k) {
        const double q = device::load_element(base_.q_dtype, call_.tiers.fp8, base_.q, q_at + i);
        of.score.value += q * k;
        of.score.magnitude += std::fabs(q * k);
        of.key_size += std::fabs(k);
        finite = finite && std::fabs(k) < HUGE_VAL;
        of.subnormal = of.subnormal || (k != 0.0 && std::fabs(k) < least);
      });
      Logit logit;
      if (!finite || !logit_of(call_, pair, j, of, logit)) {
        claim = false;
        return;
      }
      sums.add(logit);
      call_.kind(device::kLogitX)[pair.slots + j] = logit.x;
      call_.kind(device::kLogitRadius)[pair.slots + j] = logit.radius;
      call_.kind(device::kLogitError)[pair.slots + j] = logit.error;
    });
    call_.logits[call_.unit_pair(unit, p % device::kGroupPairs)] = {sums.x_max, sums.x_abs,
                                                                    sums.x_error, claim};
  }

  void sum_values(int unit, int p) {
    const double least = std::ldexp(1.0, base_.facts.operand.min_exponent);
    const int64_t at = call_.unit_pair(unit, p % device::kGroupPairs);
    const bool tiny = base_.subnormal != 0;
    bool finite = true, subnormal = false;
    for (int dim = 0; dim < base_.dims; ++dim) {
      double sums[device::kGroupSums] = {};
      float low = HUGE_VALF, high = -HUGE_VALF;
      each_key(unit, p, [&](const device::PairWork &pair, int j) {
        const float value =
            device::load_element(base_.kv_dtype, call_.tiers.fp8, place(pair, j, true), dim);
        const double v = value, size = std::fabs(v);
        const auto of = [&](int kind) { return call_.kind(kind)[pair.slots + j] * 0x1p-800; };
        finite = finite && size < HUGE_VAL;
        subnormal = subnormal || (v != 0.0 && size < least);
        low = std::min(low, value);
        high = std::max(high, value);
        sums[device::kSumValue] += of(device::kOfWeight) * v;
        sums[device::kSumRho] += of(device::kOfRho) * v;
        sums[device::kSumRhoSize] += of(device::kOfRho) * size;
        sums[device::kSumWide] += of(device::kOfWide) * size;
        sums[device::kSumDoubt] += of(device::kOfDoubt) * size;
        sums[device::kSumSteps] += of(device::kOfSteps) * size;
        if (tiny) sums[device::kSumTiny] += of(device::kOfTiny) * size;
      });
      for (int k = 0; k < device::kGroupSums; ++k)
        call_.sums[(at * device::kGroupSums + k) * base_.dims + dim] = sums[k];
      call_.ranges[2 * at * base_.dims + dim] = low;
      call_.ranges[(2 * at + 1) * base_.dims + dim] = high;
    }
    call_.values[at] = {finite, subnormal};
  }

  void sum_around(int unit, int p) {
    const int64_t at = call_.unit_pair(unit, p % device::kGroupPairs);
    for (int dim = 0; dim < base_.dims; ++dim) {
      const device::PairColumn &column = call_.columns[int64_t{p} * base_.dims + dim];
      double around = 0.0, replayed = 0.0;
      each_key(unit, p, [&](const device::PairWork &pair, int j) {
        const double v =
            device::load_element(base_.kv_dtype, call_.tiers.fp8, place(pair, j, true), dim);
        const auto of = [&](int kind) { return call_.kind(kind)[pair.slots + j] * 0x1p-800; };
        around += of(device::kOfError) * std::fabs(v - column.mid);
        replayed +=
            std::fabs(of(device::kOfRescale) * v - of(device::kOfMass) * column.replayed.value);
      });
      call_.centered[2 * at * base_.dims + dim] = around;
      call_.centered[(2 * at + 1) * base_.dims + dim] = replayed;
    }
  }

  const device::GroupCall &call_;
  const device::Call &base_;
  OneThread team_;
};

} // namespace

TierReport judge_tiers_here(const AttentionRows &rows, const CallOutputs &outputs,
                            const KernelModel &model, bool elements) {
  if (const std::string reason = tiers_refuse(rows, model); !reason.empty())
    throw std::invalid_argument("tiers: " + reason);
  const device::TierArrays arrays = device::arrays_of(rows, model);
  device::TierCall call = device::make_tier_call(rows, outputs, model, arrays, in_place);
  Results results(call.pairs, rows.out.dims, elements);
  results.pass_to(call);
  std::vector<unsigned char> scratch(static_cast<size_t>(call.scratch.bytes()));
  call.scratch_base = scratch.data();
  const auto memory = std::make_unique<device::TeamMemory>();
  OneThread team;
  device::RowBody<OneThread> body(call, team, *memory, 0);
  for (int64_t pair = 0; pair < call.pairs; ++pair)
    body.run(pair);
  return results.report(rows.out, outputs.lse != nullptr);
}

TierReport judge_groups_here(const AttentionRows &rows, const CallOutputs &outputs,
                             const KernelModel &model, bool elements) {
  if (const std::string reason = groups_refuse(rows, model); !reason.empty())
    throw std::invalid_argument("groups: " + reason);
  // Small, so that a call of a test takes several launches, units and stripes.
  constexpr device::GroupSizes kSizes{int64_t{4} << 20, 8, 1};
  const device::TierArrays arrays = device::arrays_of(rows, model);
  const device::GroupPlan plan =
      device::plan_groups(rows, arrays, may_be_subnormal(arrays.shape.model), kSizes);
  device::GroupCall call = device::make_group_call(rows, outputs, model, arrays, plan, in_place);
  Results results(call.tiers.pairs, rows.out.dims, elements);
  results.pass_to(call.tiers);
  for (const device::GroupWave &wave : plan.waves) {
    std::vector<std::vector<unsigned char>> memory;
    place_wave(call, wave, plan.groups.data(), 1,
               [&](size_t bytes) { return memory.emplace_back(bytes + 1).data(); });
    GroupSteps(call).run();
  }
  return results.report(rows.out, outputs.lse != nullptr);
}

TierReport judge_merges_here(const MergeRows &rows, const CallOutputs &outputs,
                             const KernelModel &model, bool elements) {
  if (const std::string reason = merges_refuse(rows); !reason.empty())
    throw std::invalid_argument("merges: " + reason);
  device::MergeCall call = device::make_merge_call(rows, outputs, model, in_place);
  Results results(call.pairs, rows.out.dims, elements);
  results.pass_to(call);
  std::vector<double> scratch(static_cast<size_t>(2 * call.most_states) + 1);
  call.scratch = scratch.data();
  OneThread team;
  device::MergeBody<OneThread> body(call, team, 0);
  for (int64_t pair = 0; pair < call.pairs; ++pair)
    body.run(pair);
  return results.report(rows.out, outputs.lse != nullptr);
}

} // namespace assay::oracle
