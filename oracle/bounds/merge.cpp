// SPDX-License-Identifier: Apache-2.0
#include "oracle/bounds/merge.h"

#include <algorithm>
#include <cmath>

#include "oracle/bounds/declaration.h"
#include "oracle/bounds/row_formulas.h"
#include "oracle/exact/sums.h"

namespace assay::oracle {
namespace {

constexpr double kU53 = 0x1p-53;

struct States {
  std::vector<float> o;                   // of the live states
  std::vector<double> lse, weight, omega; // omega: error of the kernel's weight
  double top = 0.0, z = 0.0, mass_error = 0.0, omega_mean = 0.0, mass_low = 0.0;
  double log_omega_max = 0.0; // log2 of the largest 1 + omega
};

// Live states: those that carry weight. Returns whether they are all finite.
bool collect(const MergeProblem &problem, MergeReference &result, States &states) {
  const auto d = static_cast<size_t>(problem.head_dim);
  bool finite = true;
  for (size_t s = 0; s < problem.states(); ++s) {
    const float lse = problem.lse[s];
    if (lse == -INFINITY) continue;
    finite = finite && std::isfinite(lse);
    result.only_state = states.lse.empty() ? static_cast<int>(s) : -1;
    states.lse.push_back(lse);
    for (size_t i = 0; i < d; ++i) {
      finite = finite && std::isfinite(problem.o[s * d + i]);
      states.o.push_back(problem.o[s * d + i]);
    }
  }
  return finite;
}

// BOUNDS.md section 5: log2 of a weight is off by the rounded difference and, in natural base, by
// the product with the fp32 constant log2(e).
void weigh(const MergeProblem &problem, States &states) {
  const bool natural = problem.lse_base == ASSAY_LSE_NATURAL;
  const double to_base2 = natural ? kLog2E : 1.0;
  // A kernel of the other base converts the difference, and its exponential converts it back.
  const bool other = problem.arithmetic.exponential == ASSAY_EXP_NATURAL && !natural;
  const double relative = kU + (natural ? kScaleError : other ? 2 * kScaleError : 0.0);
  states.top = *std::max_element(states.lse.begin(), states.lse.end());
  const double eps = problem.arithmetic.exp2_rel_error;
  double error = 0.0, mean = 0.0, low = 0.0;
  for (double lse : states.lse) {
    const double below = (states.top - lse) * to_base2;
    if (below > kCertainlyFlushed) { // its weight is within underflow of 0, exact and computed
      states.weight.push_back(0.0);
      states.omega.push_back(1.0);
      continue;
    }
    const double w = std::exp2(-below);
    const double eta = below * relative * kSlack + kFloor;
    double omega = std::expm1(kLn2 * eta + std::log1p(eps)) * kSlack;
    states.log_omega_max = std::max(states.log_omega_max, eta + std::log1p(eps) / kLn2);
    const bool flushed = below >= kFlushExponent;
    if (flushed) omega = std::max(omega, 1.0);
    states.weight.push_back(w);
    states.omega.push_back(omega);
    states.z += w;
    error += w * (std::expm1(kLn2 * below * 4 * kU53) + 0x1p-50);
    mean += w * omega;
    // An exponential that is always low gives 1 - eps_x, which is less than 1 / (1 + omega).
    if (!flushed) low += w * std::exp(std::log1p(-eps) - kLn2 * eta) / kSlack;
  }
  states.mass_error = error / states.z * kSlack;
  states.omega_mean = mean / states.z * kSlack;
  states.mass_low = low / states.z / kSlack;
}

void bound_lse(const MergeProblem &problem, const States &states, RowReference &row) {
  const double n = static_cast<double>(states.lse.size());
  const bool natural = problem.lse_base == ASSAY_LSE_NATURAL;
  const double from_base2 = natural ? kLn2 : 1.0;
  const double tail = std::log2(states.z);
  row.lse.mid = states.top + tail * from_base2;
  row.lse.rad =
      (from_base2 * (2 * states.mass_error + (2 * n + 8) * kU53 + 16 * kU53 * std::fabs(tail)) +
       4 * kU53 * (std::fabs(row.lse.mid) + std::fabs(states.top))) *
      kSlack;
  const double weights =
      std::max(std::min(std::log1p(states.omega_mean) / kLn2, states.log_omega_max),
               -std::log2(states.mass_low));
  double bound = weights + (n + 1) * kU / kLn2 +
                 problem.arithmetic.log2_abs_error * (1.0 + tail + weights + 0.01);
  // The constant and the product; a logarithm of the other base adds its own.
  const bool other = problem.arithmetic.exponential == ASSAY_EXP_NATURAL;
  const double conversions = (natural ? 2 * kU : 0.0) + (other ? 2 * kScaleError : 0.0);
  bound += conversions * (tail + bound);
  if (natural) bound *= kLn2;
  bound += kU * (std::fabs(row.lse.mid) + bound);
  row.lse_budget = bound * kSlack + kFloor;
}

void bound_outputs(const MergeProblem &problem, const States &states, RowReference &row) {
  const size_t n = states.lse.size();
  const int d = problem.head_dim;
  const auto columns = static_cast<size_t>(d);
  std::vector<double> value(columns), plain(columns), weighted(columns), centered(columns), a(n);
  weighted_sums(states.o.data(), n, d, states.weight.data(), value.data());
  weighted_magnitudes(states.o.data(), n, d, states.weight.data(), plain.data());
  for (size_t s = 0; s < n; ++s)
    a[s] = states.weight[s] * (1.0 + states.omega[s]);
  weighted_magnitudes(states.o.data(), n, d, a.data(), weighted.data());
  for (size_t i = 0; i < columns; ++i)
    value[i] /= states.z;
  for (size_t s = 0; s < n; ++s)
    a[s] = states.weight[s] * states.omega[s];
  centered_magnitudes(states.o.data(), n, d, a.data(), a.data(), value.data(), centered.data());

  const double count = static_cast<double>(n);
  const double sum = states.z * states.mass_low;
  const double theta = std::expm1(count * std::log1p(kU));
  const double phi =
      (1.0 + problem.arithmetic.rcp_rel_error) * (1.0 + kU) / (1.0 - std::min(theta, 0.5)) - 1.0;
  for (size_t i = 0; i < columns; ++i) {
    double limit = 0.0;
    for (size_t s = 0; s < n; ++s) {
      limit = std::max(limit, std::fabs(static_cast<double>(states.o[s * columns + i])));
    }
    row.o[i] = {value[i],
                ((2.02 * states.mass_error + 4 * (count + 8) * kU53) * plain[i] / states.z +
                 2.02 * states.mass_error * limit + 0x1p-500 * limit) *
                        kSlack +
                    0x1p-1000};
    BudgetTerms &t = row.t0[i];
    t.weights =
        std::min((centered[i] / sum + row.o[i].rad * states.omega_mean / states.mass_low) * kSlack,
                 2 * limit);
    const double result = std::fabs(value[i]) + row.o[i].rad + t.weights;
    t.merge =
        std::expm1((count + 1) * std::log1p(kU)) * std::min(weighted[i] / sum * kSlack, limit);
    t.normalisation = phi * (result + t.merge);
    t.flush = (2 * count + 4) * kFloor + count * kFloor * limit;
    if (problem.dtype != ASSAY_FP32) {
      add_output_rounding(format_of(problem.dtype), std::fabs(value[i]) + row.o[i].rad, t);
    } else {
      t.total = (t.weights + t.merge + t.normalisation + t.flush) * kSlack;
    }
    t.overflow_possible = count * limit * 1.01 >= kFp32Limit;
  }
}

} // namespace

MergeReference merge_row(const MergeProblem &problem) {
  require_declaration(problem.arithmetic);
  MergeReference result;
  States states;
  RowReference &row = result.row;
  row.o.assign(static_cast<size_t>(problem.head_dim), {});
  row.t0.assign(static_cast<size_t>(problem.head_dim), {});
  row.finite_inputs = collect(problem, result, states);
  row.empty = states.lse.empty();
  row.claim = row.finite_inputs;
  if (!row.finite_inputs) row.no_claim_reason = "a live input of the row is not finite";
  if (row.empty || !row.claim) return result;
  weigh(problem, states);
  bound_lse(problem, states, row);
  bound_outputs(problem, states, row);
  return result;
}

} // namespace assay::oracle
