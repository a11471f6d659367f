// SPDX-License-Identifier: Apache-2.0
#include "oracle/bounds/merge.h"

#include <algorithm>
#include <cmath>

#include "oracle/bounds/declaration.h"
#include "oracle/bounds/merge_formulas.h"
#include "oracle/exact/sums.h"

namespace assay::oracle {
namespace {

struct States : MergeNumbers {
  std::vector<float> o; // O of the live states
  std::vector<double> lse, weight, omega;
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

void weigh(const MergeFacts &facts, States &states) {
  states.states = static_cast<double>(states.lse.size());
  states.top = *std::max_element(states.lse.begin(), states.lse.end());
  double error = 0.0, mean = 0.0, low = 0.0;
  for (double lse : states.lse) {
    const StateWeight state = weigh_state(facts, states.top, lse);
    states.weight.push_back(state.weight);
    states.omega.push_back(state.omega);
    states.log_omega_max = std::max(states.log_omega_max, state.log_omega);
    states.z += state.weight;
    error += state.error;
    mean += state.mean;
    low += state.low;
  }
  finish_merge(states, error, mean, low);
}

void bound_outputs(const MergeFacts &facts, int d, const States &states, RowReference &row) {
  const size_t n = states.lse.size();
  const auto columns = static_cast<size_t>(d);
  std::vector<double> value(columns), plain(columns), weighted(columns), centered(columns), a(n),
      center(columns);
  weighted_sums(states.o.data(), n, d, states.weight.data(), value.data());
  weighted_magnitudes(states.o.data(), n, d, states.weight.data(), plain.data());
  for (size_t s = 0; s < n; ++s)
    a[s] = states.weight[s] * (1.0 + states.omega[s]);
  weighted_magnitudes(states.o.data(), n, d, a.data(), weighted.data());
  for (size_t i = 0; i < columns; ++i)
    center[i] = value[i] / states.z;
  for (size_t s = 0; s < n; ++s)
    a[s] = states.weight[s] * states.omega[s];
  centered_magnitudes(states.o.data(), n, d, a.data(), a.data(), center.data(), centered.data());
  for (size_t i = 0; i < columns; ++i) {
    double limit = 0.0;
    for (size_t s = 0; s < n; ++s)
      limit = std::max(limit, std::fabs(static_cast<double>(states.o[s * columns + i])));
    row.t0[i] = merged_column(facts, states, {value[i], plain[i], weighted[i], centered[i], limit},
                              row.o[i]);
    row.joint.center.push_back(row.o[i].mid);
    row.joint.blur.push_back(merged_blur(d, row.o[i], limit));
  }
}

// The weights of the states are those of all components.
void bound_whole_row(const MergeFacts &facts, const States &states, RowReference &row) {
  JointRow &joint = row.joint;
  static_cast<JointScalars &>(joint) = merged_scalars(facts, states);
  for (size_t s = 0; s < states.weight.size(); ++s)
    joint.keys.push_back(merged_key(states, states.weight[s], states.omega[s]));
  joint.accumulation.assign(row.t0.size(), 0.0);
  joint.result.assign(row.t0.size(), 0.0);
  for (const BudgetTerms &t : row.t0)
    joint.elements.push_back(merged_element(joint, t).others);
}

} // namespace

MergeFacts merge_facts(const assay_arithmetic &arithmetic, assay_dtype dtype,
                       assay_lse_base lse_base) {
  require_declaration(arithmetic);
  return {.exp2 = arithmetic.exp2_rel_error,
          .log2 = arithmetic.log2_abs_error,
          .rcp = arithmetic.rcp_rel_error,
          .natural = lse_base == ASSAY_LSE_BASE_E,
          .natural_exponential = arithmetic.exponential == ASSAY_EXP_NATURAL,
          .rounds = dtype != ASSAY_FP32,
          .output = format_of(dtype)};
}

MergeReference merge_row(const MergeProblem &problem) {
  const MergeFacts facts = merge_facts(problem.arithmetic, problem.dtype, problem.lse_base);
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
  weigh(facts, states);
  row.lse_budget = merged_lse(facts, states, row.lse);
  bound_outputs(facts, problem.head_dim, states, row);
  if (has_joint(states)) bound_whole_row(facts, states, row);
  result.live = std::move(states.o);
  return result;
}

} // namespace assay::oracle
