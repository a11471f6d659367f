// SPDX-License-Identifier: Apache-2.0
#include "oracle/bounds/lse_bound.h"

#include <algorithm>
#include <cmath>

namespace assay::oracle {
namespace {

constexpr double kU53 = 0x1p-53;

} // namespace

double lse_budget(const RowProblem &problem, const RowWork &work, double lse2) {
  const TailErrors tail = tail_errors(work.model, work.shape);
  // LSE moves by no more than the exponents do; and it is at least the largest key's own, which is
  // within log2 n of it.
  const double above = std::min(std::log1p(work.omega_mean) / kLn2, work.log_omega_max);
  const double largest_alone = std::log2(static_cast<double>(work.x.size())) + work.x_error_max +
                               2 * kU * work.x_abs - std::log1p(-work.model.exp2) / kLn2;
  const double weights = std::max(above, std::min(-std::log2(work.mass_low), largest_alone));
  const double rounded_max = work.shape.stages > 0 ? 0.0 : kU * work.x_abs;
  double bound = weights + work.scale_error * work.x_abs + tail.row_sum / kLn2 + rounded_max +
                 work.model.log2 * (1.0 + work.log_sum) + work.model.conversion * work.log_sum;
  bound += kU * (std::fabs(lse2) + bound);
  // From one base to the other, an fp32 constant and the product: at most one rounding each.
  const bool natural = problem.lse_base == ASSAY_LSE_NATURAL;
  if (natural || work.model.conversion > 0.0) bound += 2 * kU * (std::fabs(lse2) + bound);
  if (natural) bound *= kLn2;
  return bound * kSlack + kFloor;
}

Enclosure lse_enclosure(const RowProblem &problem, const RowWork &work, double *lse2) {
  const double n = static_cast<double>(work.x.size());
  double worst = 0.0;
  for (size_t j = 0; j < work.x.size(); ++j) {
    worst = std::max(worst, work.x_radius[j] + (work.x_max - work.x[j]) * kU53 + 4 * kExp2Error);
  }
  // A weighted mean of factors 2^(+-r_j): at most the largest r_j, and at most its mean when small.
  const double weights = work.mass_error < 0.25 ? std::min(worst, 2.0 * work.mass_error) : worst;
  *lse2 = work.x_max + std::log2(work.z);
  Enclosure result{*lse2, weights + (2 * n + 8) * kU53 + 8 * kU53 * std::fabs(work.x_max) +
                              16 * kU53 * (1.0 + std::fabs(std::log2(work.z)))};
  if (problem.lse_base == ASSAY_LSE_NATURAL) {
    result = {*lse2 * kLn2, result.rad * kLn2 + 4 * kU53 * std::fabs(*lse2)};
  }
  result.rad *= kSlack;
  return result;
}

} // namespace assay::oracle
