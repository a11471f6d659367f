// SPDX-License-Identifier: Apache-2.0
// Theorem T0 of oracle/README.md: enclosure of the exact row and its order-free budget.
#include <algorithm>
#include <cmath>

#include "oracle/bounds/block_fma.h"
#include "oracle/bounds/lse_bound.h"
#include "oracle/bounds/replay.h"
#include "oracle/bounds/row_work.h"
#include "oracle/exact/sums.h"

namespace assay::oracle {
namespace {

constexpr double kU53 = 0x1p-53;
constexpr double kLargestQuantised = 1024.0; // above every value of e4m3 and int8

struct ColumnSums {
  std::vector<double> value;     // sum w v
  std::vector<double> magnitude; // sum w (1 + omega) |v|
  std::vector<double> subnormal; // error of P where it may be subnormal
  std::vector<double> centered;  // sum w omega |v - o|
};

double largest(const KeySet &keys, size_t i) {
  return std::max(std::fabs(keys.v_min[i]), std::fabs(keys.v_max[i]));
}

// Absolute rounding error of keys whose P may be subnormal in the element type, as a coefficient of
// |v_j|, on the scale of the normalised weights.
std::vector<double> subnormal_coefficients(const RowWork &work) {
  const ErrorModel &m = work.model;
  const double slack = std::exp2(2 * work.x_error_max + 2 * kU * work.x_abs) * kSlack;
  std::vector<double> result(work.x.size(), 0.0);
  const double sum = work.shape.splits == 1 ? std::max(work.z * work.mass_low / slack, work.sum_low)
                                            : work.sum_low;
  for (size_t j = 0; j < result.size(); ++j) {
    const double w = work.weight[j] * (1.0 + work.omega[j]);
    if (work.weight_low[j] >= m.p_normal * slack) continue;
    const double mass = work.mass_low > 0.0 ? w / (work.z * work.mass_low) : 1.0;
    result[j] = std::min(mass, m.p_floor / sum) + m.alignment * m.p_normal / sum;
  }
  return result;
}

ColumnSums sum_columns(const KeySet &keys, const RowWork &work, std::vector<Enclosure> &o) {
  const size_t n = keys.size();
  const int d = keys.value_dim();
  ColumnSums sums;
  for (auto *array : {&sums.value, &sums.magnitude, &sums.subnormal, &sums.centered}) {
    array->assign(static_cast<size_t>(d), 0.0);
  }
  std::vector<double> a(n), center(static_cast<size_t>(d));
  weighted_sums(keys.v.data(), n, d, work.weight.data(), sums.value.data());
  for (size_t j = 0; j < n; ++j)
    a[j] = work.weight[j] * (1.0 + work.omega[j]);
  weighted_magnitudes(keys.v.data(), n, d, a.data(), sums.magnitude.data());
  if (work.model.p_format != nullptr && work.model.p_normal > 2 * kFloor) {
    const std::vector<double> coefficient = subnormal_coefficients(work);
    weighted_magnitudes(keys.v.data(), n, d, coefficient.data(), sums.subnormal.data());
  }
  for (size_t i = 0; i < center.size(); ++i) {
    const double mid = sums.value[i] / work.z, limit = largest(keys, i);
    const double mean = std::min(sums.magnitude[i] / work.z, limit); // >= sum pi |v|
    const double weights = std::min(work.weight_error * 2 * mean, work.mass_error * 2 * limit);
    const double steps = static_cast<double>(n) + 8;
    o[i] = {mid, (1.01 * weights + (4 * steps * kU53 + work.kv_unit) * mean + 0x1p-500 * limit) *
                         kSlack +
                     0x1p-1000};
    if (work.coarse) o[i] = {0.0, limit * (1.0 + work.kv_unit)};
    center[i] = o[i].mid;
  }
  for (size_t j = 0; j < n; ++j)
    a[j] = work.weight[j] * work.omega[j];
  centered_magnitudes(keys.v.data(), n, d, a.data(), a.data(), center.data(), sums.centered.data());
  return sums;
}

struct ColumnBounds {
  double convex;    // |any convex combination of v - o|
  double magnitude; // sum of effective weights times |v|
  double subnormal;
  double weights;
};

ColumnBounds bound_column(const KeySet &keys, const RowWork &work, const ColumnSums &sums,
                          const Enclosure &o, size_t i) {
  const double limit = largest(keys, i);
  ColumnBounds b{};
  b.convex = std::max(keys.v_max[i] - o.mid, o.mid - keys.v_min[i]) + o.rad + work.kv_unit * limit;
  b.magnitude = limit;
  b.subnormal = sums.subnormal[i];
  b.weights = b.convex;
  const double sum = work.z * work.mass_low;
  if (!work.coarse && !work.vague && sum > 0.0) {
    b.magnitude = std::min(sums.magnitude[i] / sum * kSlack, limit);
    b.weights = std::min(
        (sums.centered[i] / sum + o.rad * work.omega_mean / work.mass_low) * kSlack, b.convex);
  }
  if (work.coarse || work.vague)
    b.subnormal = std::min(b.subnormal, static_cast<double>(keys.size()) * limit);
  return b;
}

BudgetTerms budget_of(const RowProblem &problem, const RowWork &work, const TailErrors &tail,
                      const ColumnBounds &b, Enclosure &o, size_t i) {
  const ErrorModel &m = work.model;
  const KeySet &keys = *problem.keys;
  const double limit = largest(keys, i);
  BudgetTerms t;
  t.weights = b.weights;
  t.p_rounding = m.p_unit * b.magnitude + b.subnormal;
  const double magnitude = (1.0 + m.p_unit) * b.magnitude + b.subnormal;
  t.accumulation =
      (tail.pv + 2 * work.kv_unit) * magnitude + // a weight times the scale of its value
      value_rounding(problem, magnitude) * (1.0 + tail.pv);
  const double result = std::fabs(o.mid) + o.rad + b.weights;
  const double numerator = t.p_rounding + t.accumulation;
  t.normalisation = tail.normalise * (result + numerator);
  t.merge = tail.merge * magnitude * (1.0 + tail.normalise);
  t.flush = underflow_budget(problem, work, tail, limit);
  if (work.kv_unit > 0.0)
    t.flush += static_cast<double>(keys.size()) * kFloor * kLargestQuantised / work.sum_low;
  finish_output(problem, o, t);
  t.overflow_possible = overflow_possible(problem, work, limit);
  // What a store makes of values that fp8 has no room for is not said.
  if (is_fp8(problem.output()) &&
      std::fabs(o.mid) + o.rad + t.total >= format_of(problem.output()).max_finite)
    t.overflow_possible = true;
  return t;
}

// The bit model knows the operands' bits: not those of a scaled bf16 query, and not of one that a
// kernel may or may not have scaled, where that changes how subnormals align. Behind a map, the
// scores are not what is exponentiated.
bool replayable(const RowProblem &problem) {
  const assay_arithmetic &arithmetic = problem.arithmetic;
  if (arithmetic.mma_block <= 0 || problem.features.mapped()) return false;
  if (arithmetic.score_format != ASSAY_FORMAT_FP32 || problem.rounds_kv()) return false;
  if (!problem.features.fp8) return true;
  const auto plain = [](float x) {
    return x == 0.0f || (std::fabs(x) >= 0x1p-14f && std::fabs(x) < 0x1p15f);
  };
  return problem.dtype == ASSAY_FP16 && std::all_of(problem.q.begin(), problem.q.end(), plain);
}

// T2: the kernel's own scores, so that only the exponential and what follows is uncertain.
ReplayedRow replay_bits(const RowProblem &problem) {
  const std::vector<double> scores = replay_scores(problem);
  RowWork work;
  if (!prepare_row(problem, work, &scores).empty()) return {};
  ReplayedRow row = replay_row(problem, work);
  double lse2 = 0.0;
  row.lse = lse_enclosure(problem, work, &lse2);
  row.lse_budget = lse_budget(problem, work, lse2);
  return row;
}

} // namespace

RowReference attention_row(const RowProblem &problem) {
  const KeySet &keys = *problem.keys;
  RowReference row;
  const auto d = static_cast<size_t>(keys.value_dim());
  row.o.assign(d, {});
  row.t0.assign(d, {});
  row.empty = keys.visible() == 0;
  row.sunken = row.empty && keys.sink;
  if (keys.size() == 0) return row;
  row.finite_inputs = keys.finite && std::all_of(problem.q.begin(), problem.q.end(),
                                                 [](float x) { return std::isfinite(x); });
  RowWork work;
  row.no_claim_reason =
      row.finite_inputs ? prepare_row(problem, work) : "a live input of the row is not finite";
  row.claim = row.no_claim_reason.empty();
  if (!row.claim) return row;

  double lse2 = 0.0;
  row.lse = lse_enclosure(problem, work, &lse2);
  row.lse_budget = lse_budget(problem, work, lse2);
  const ColumnSums sums = sum_columns(keys, work, row.o);
  const TailErrors tail = tail_errors(work.model, work.shape);
  for (size_t i = 0; i < d; ++i) {
    const ColumnBounds bounds = bound_column(keys, work, sums, row.o[i], i);
    row.t0[i] = budget_of(problem, work, tail, bounds, row.o[i], i);
  }
  if (problem.order) row.t1 = replay_row(problem, work);
  if (problem.order && problem.replay_scores && replayable(problem)) {
    row.t2 = replay_bits(problem);
  }
  return row;
}

} // namespace assay::oracle
