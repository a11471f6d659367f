// SPDX-License-Identifier: Apache-2.0
#include "oracle/bounds/replay_direction.h"

#include <algorithm>
#include <cmath>
#include <vector>

#include "oracle/bounds/replay.h"
#include "oracle/exact/sums.h"

namespace assay::oracle {
namespace {

/// The part of what an element may be off by that no other element of the row shares.
double own_share(const BudgetTerms &budget) {
  return budget.total - (budget.weights + budget.p_rounding) / kSlack;
}

/// What keys allow along u, on the scale of P.V: their rounded weights, and what becomes of them.
double allowed_by_keys(const RowProblem &problem, const RowWork &work, const ReplayedRow &row,
                       const std::vector<double> &u) {
  const KeySet &keys = *problem.keys;
  KeyReplay replay;
  ReplayBudget b;
  replay_keys(problem, work, replay, b);
  const double scale = problem.features.v_scale / static_cast<double>(problem.features.o_scale);
  double along_o = 0.0, unsure = 0.0; // u.o', and what it may be off by
  for (size_t i = 0; i < u.size(); ++i) {
    along_o += u[i] * row.o[i].mid / scale;
    unsure += std::fabs(u[i] / scale) * row.o[i].rad;
  }
  double sum = (std::fabs(along_o) + unsure) * b.sums.denominator;
  for (size_t j = 0; j < keys.size(); ++j) {
    const double along = dot(u.data(), keys.value(j), static_cast<int>(u.size())).value;
    sum += b.ambiguity[j] * std::fabs(along) +
           std::fabs(b.rescale[j] * along - b.rescale_mass[j] * along_o) +
           b.rescale_mass[j] * unsure;
  }
  return sum / b.sums.mass_low * std::fabs(scale);
}

} // namespace

double ratio_along_error(const RowProblem &problem, const RowWork &work, const ReplayedRow &row,
                         std::span<const float> got) {
  if (problem.features.v_scale == 0.0f) return 0.0;
  std::vector<double> u(row.o.size(), 0.0);
  double error = 0.0, allowed = 0.0, size = 0.0;
  for (size_t i = 0; i < u.size(); ++i) {
    const BudgetTerms &budget = row.budget[i];
    if (budget.overflow_possible || !std::isfinite(budget.total)) continue;
    const double off = static_cast<double>(got[i]) - row.o[i].mid;
    const double own = own_share(budget) + row.o[i].rad;
    u[i] = std::copysign(std::max(0.0, std::fabs(off) - own), off);
    error += u[i] * off;
    allowed += std::fabs(u[i]) * own;
    size += std::fabs(u[i]) * (std::fabs(row.o[i].mid) + std::fabs(off));
  }
  if (!(error > 0.0)) return 0.0;
  // Sums of this evaluation, in double.
  allowed = (allowed + allowed_by_keys(problem, work, row, u)) * kSlack + 0x1p-40 * size;
  return error / allowed;
}

} // namespace assay::oracle
