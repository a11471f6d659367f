// SPDX-License-Identifier: Apache-2.0
// Theorem T0 of oracle/BOUNDS.md: enclosure of the exact row and its order-free budget.
#include <algorithm>
#include <cmath>

#include "oracle/bounds/block_fma.h"
#include "oracle/bounds/replay.h"
#include "oracle/bounds/row_work.h"
#include "oracle/exact/sums.h"

namespace assay::oracle {
namespace {

std::vector<double> subnormal_coefficients(const RowWork &work) {
  const double slack = subnormal_slack(work);
  std::vector<double> result(work.x.size());
  for (size_t j = 0; j < result.size(); ++j) {
    const KeyWeight key{
        .weight = work.weight[j], .omega = work.omega[j], .low = work.weight_low[j]};
    result[j] = subnormal_coefficient(work, slack, work.z, work.mass_low, key);
  }
  return result;
}

// Sums of all components, and the enclosures, which `centered` needs.
std::vector<ColumnSums> sum_columns(const KeySet &keys, const RowWork &work,
                                    std::vector<Enclosure> &o) {
  const size_t n = keys.size();
  const int d = keys.value_dim();
  const auto columns = static_cast<size_t>(d);
  std::vector<double> value(columns), magnitude(columns), subnormal(columns), centered(columns);
  std::vector<double> a(n), center(columns);
  weighted_sums(keys.v.data(), n, d, work.weight.data(), value.data());
  for (size_t j = 0; j < n; ++j)
    a[j] = work.weight[j] * (1.0 + work.omega[j]);
  weighted_magnitudes(keys.v.data(), n, d, a.data(), magnitude.data());
  if (may_be_subnormal(work.model))
    weighted_magnitudes(keys.v.data(), n, d, subnormal_coefficients(work).data(), subnormal.data());
  std::vector<ColumnSums> sums(columns);
  for (size_t i = 0; i < columns; ++i) {
    sums[i] = {value[i], magnitude[i], subnormal[i], 0.0, keys.v_min[i], keys.v_max[i]};
    o[i] = enclose_column(work, sums[i]);
    center[i] = o[i].mid;
  }
  for (size_t j = 0; j < n; ++j)
    a[j] = work.weight[j] * work.omega[j];
  centered_magnitudes(keys.v.data(), n, d, a.data(), a.data(), center.data(), centered.data());
  for (size_t i = 0; i < columns; ++i)
    sums[i].centered = centered[i];
  return sums;
}

// The bit model knows the operands' bits, of 11 each: not those of a scaled bf16 query, and not of
// one that a kernel may or may not have scaled, where that changes how subnormals align. Behind a
// map, the scores are not what is exponentiated.
bool replayable(const RowProblem &problem) {
  const assay_arithmetic &arithmetic = problem.arithmetic;
  if (arithmetic.mma_block <= 0 || problem.features.mapped()) return false;
  if (problem.dtype == ASSAY_FP32) return false;
  if (!plain_scores(arithmetic) || problem.rounds_kv()) return false;
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
  row.lse = lse_of(work, &lse2);
  row.lse_budget = lse_budget(work, lse2);
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
  row.lse = lse_of(work, &lse2);
  row.lse_budget = lse_budget(work, lse2);
  const std::vector<ColumnSums> sums = sum_columns(keys, work, row.o);
  const std::vector<Enclosure> before = row.o;
  const TailErrors tail = tail_errors(work.model, work.shape);
  for (size_t i = 0; i < d; ++i)
    row.t0[i] = budget_of(work, tail, sums[i], row.o[i]);
  if (problem.order) row.t1 = replay_row(problem, work);
  if (problem.order && problem.replay_scores && replayable(problem)) {
    row.t2 = replay_bits(problem);
  }
  if (!row.t1.applies()) row.joint = joint_row(problem, work, sums, before, row.t0);
  return row;
}

} // namespace assay::oracle
