// SPDX-License-Identifier: Apache-2.0
#include "oracle/bounds/joint.h"

#include <algorithm>
#include <cmath>

#include "oracle/bounds/row_work.h"
#include "oracle/exact/sums.h"

namespace assay::oracle {
namespace {

/// Coefficients of every key; returns what the alignment of subnormal weights adds per largest |v|.
double weigh_keys(const RowWork &work, JointRow &row) {
  const bool subnormal = may_be_subnormal(work.model);
  const double slack = subnormal_slack(work);
  double alignment = 0.0;
  row.keys.resize(work.x.size());
  for (size_t j = 0; j < row.keys.size(); ++j) {
    const KeyWeight key{
        .weight = work.weight[j], .omega = work.omega[j], .low = work.weight_low[j]};
    SubnormalCost cost;
    if (subnormal) cost = subnormal_cost(work, slack, work.z, work.mass_low, key);
    alignment += cost.alignment;
    row.subnormal += cost.rounding;
    row.keys[j] = joint_key(work, cost.rounding, key);
  }
  return alignment;
}

/// Without an order: all but two tiles of a state are whole, and each of those two takes two blocks
/// more than its keys fill.
PartialSums partial_sums(const RowProblem &problem, const RowWork &work, double pv, double factor) {
  const auto n = static_cast<double>(work.facts.keys);
  const bool plain = work.kv_unit == 0.0 && !work.facts.rounds_kv && problem.order == nullptr;
  if (!plain || problem.span > work.facts.keys || pv == 0.0) return {};
  const ErrorModel &m = work.model;
  const bool blocks = m.block > 0;
  const double tiles = 1.0 / m.tile;
  const double states = std::min(static_cast<double>(work.shape.splits) * work.shape.states, n);
  const double keys = m.kappa * static_cast<double>(pv_blocks(m, m.tile)) * tiles + m.unit * tiles;
  const double state = (blocks ? 4 * m.kappa : 0.0) + 2 * m.unit;
  return {.keys = n * keys * factor,
          .states = std::sqrt(states) * state * factor,
          .once = 2 * m.kappa * (1.0 + pv) / pv};
}

/// Errors of P.V in a direction by the partial sums; BOUNDS.md has the proof.
double accumulated(const JointRow &row, std::span<const double> u, double spread) {
  double square = 0.0, result = 0.0, once = 0.0;
  for (size_t i = 0; i < u.size(); ++i) {
    square += u[i] * u[i];
    result += std::fabs(u[i]) * row.result[i];
    once += std::fabs(u[i]) * row.accumulation[i];
  }
  const double longest = spread * std::sqrt(square);
  return row.partial.keys * 0.5 * (longest + result) + row.partial.states * longest +
         row.partial.once * once;
}

void fill_lower_triangle(std::vector<double> &m, size_t d) {
  for (size_t i = 0; i < d; ++i)
    for (size_t k = 0; k < i; ++k)
      m[i * d + k] = m[k * d + i];
}

/// At most 4 % above it for 128 dims. `m`: the upper triangle.
double largest_eigenvalue(std::vector<double> m, size_t d) {
  constexpr int kSquarings = 7;
  fill_lower_triangle(m, d);
  // The 128th root of the trace of the 128th power is d^(1/128) times the eigenvalue at most.
  double log_trace = 0.0;
  std::vector<double> square(m.size());
  for (int power = 0;; ++power) {
    double trace = 0.0;
    for (size_t i = 0; i < d; ++i)
      trace += m[i * d + i];
    if (!(trace > 0.0)) return power == 0 ? 0.0 : INFINITY;
    log_trace += std::log(trace) / (1 << power);
    if (power == kSquarings) return std::exp(log_trace);
    for (double &x : m)
      x /= trace;
    std::fill(square.begin(), square.end(), 0.0);
    for (size_t i = 0; i < d; ++i)
      for (size_t k = 0; k < d; ++k)
        for (size_t l = i; l < d; ++l)
          square[i * d + l] += m[i * d + k] * m[k * d + l];
    m.swap(square);
    fill_lower_triangle(m, d);
  }
}

/// sum over keys of share * v v^T.
std::vector<double> products_of_dims(const float *v, std::span<const double> shares, size_t d) {
  std::vector<double> m(d * d);
  for (size_t j = 0; j < shares.size(); ++j)
    add_outer(v + j * d, static_cast<int>(d), shares[j], m.data());
  return m;
}

/// The same eigenvalues, beside zeros, in a smaller matrix where keys are fewer than dims.
std::vector<double> products_of_keys(const float *v, std::span<const double> shares, size_t d) {
  const size_t keys = shares.size();
  std::vector<double> m(keys * keys), u(d);
  for (size_t j = 0; j < keys; ++j) {
    for (size_t i = 0; i < d; ++i)
      u[i] = std::sqrt(shares[j]) * static_cast<double>(v[j * d + i]);
    along(v + j * d, keys - j, static_cast<int>(d), u.data(), &m[j * keys + j]);
    for (size_t k = j; k < keys; ++k)
      m[j * keys + k] *= std::sqrt(shares[k]);
  }
  return m;
}

} // namespace

double spread_of(const float *v, const JointRow &row) {
  const size_t d = row.center.size(), keys = row.keys.size();
  std::vector<double> shares(keys);
  double mass = 0.0;
  for (size_t j = 0; j < keys; ++j) {
    shares[j] = row.keys[j].share * (1.0 + 2 * row.p_unit) + 2 * row.keys[j].subnormal;
    mass += shares[j];
  }
  const double largest = keys < d ? largest_eigenvalue(products_of_keys(v, shares, d), keys)
                                  : largest_eigenvalue(products_of_dims(v, shares, d), d);
  return std::sqrt(mass * largest) * kSlack;
}

JointTerms joint_bound(const float *v, const JointRow &row, std::span<const double> u,
                       double spread) {
  JointAlong direction;
  for (size_t i = 0; i < u.size(); ++i) {
    direction.o += u[i] * row.center[i];
    direction.blur += std::fabs(u[i]) * row.blur[i];
    direction.elements += std::fabs(u[i]) * row.elements[i];
    direction.accumulation += std::fabs(u[i]) * row.accumulation[i];
  }
  if (std::isfinite(spread) && row.partial.keys > 0.0)
    direction.accumulation = std::min(direction.accumulation, accumulated(row, u, spread));
  std::vector<double> products(row.keys.size());
  along(v, products.size(), static_cast<int>(u.size()), u.data(), products.data());
  JointSums sums;
  for (size_t j = 0; j < products.size(); ++j)
    add_joint_key(row, direction, row.keys[j], products[j], sums);
  return joint_terms(row, direction, sums);
}

JointRow joint_row(const RowProblem &problem, const RowWork &work, std::span<const ColumnSums> sums,
                   std::span<const Enclosure> before, std::span<const BudgetTerms> t0) {
  JointRow row;
  if (!has_joint(work)) return row;
  static_cast<JointScalars &>(row) = joint_scalars(work);
  const double alignment = weigh_keys(work, row);
  if (!(row.entry() < 0.5)) return row;
  const double pv = tail_errors(work.model, work.shape).pv;
  row.partial = partial_sums(problem, work, pv, (1.0 + pv) * joint_growth(row) * row.scale);
  for (size_t i = 0; i < sums.size(); ++i) {
    const double largest = sums[i].largest();
    const JointElement own = joint_element(work, row, before[i], t0[i], alignment, largest);
    row.center.push_back(before[i].mid);
    row.blur.push_back(joint_blur(work, static_cast<int>(sums.size()), before[i], largest));
    row.accumulation.push_back(own.accumulation);
    row.result.push_back(std::fabs(before[i].mid) + before[i].rad +
                         (t0[i].weights + t0[i].p_rounding) / row.scale * kSlack);
    row.elements.push_back(own.others);
  }
  return row;
}

} // namespace assay::oracle
