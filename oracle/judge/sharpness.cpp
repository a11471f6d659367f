// SPDX-License-Identifier: Apache-2.0
#include "oracle/judge/sharpness.h"

#include <algorithm>
#include <cmath>
#include <vector>

namespace assay::oracle {
namespace {

/// By how much an error must be multiplied to reach the end of what is allowed.
double limit_of(const RowProblem &problem, const RowReference &row, double spread,
                std::span<const double> error) {
  double most = 0.0, square = 0.0;
  for (size_t i = 0; i < error.size(); ++i) {
    const double budget = row.t0[i].total;
    if (!(budget < INFINITY) || row.t0[i].overflow_possible) return NAN;
    most = std::max(most, std::fabs(error[i]) / budget);
    square += error[i] * error[i];
  }
  const JointTerms joint = joint_bound(problem.keys->v.data(), row.joint, error, spread);
  return 1.0 / std::max(most, square / joint.total);
}

/// What the loss of a key does to O, per its weight.
std::vector<double> of_lost_key(const RowProblem &problem, const RowReference &row, size_t key) {
  std::vector<double> error(row.o.size());
  for (size_t i = 0; i < error.size(); ++i)
    error[i] =
        row.joint.scale * (static_cast<double>(problem.keys->value(key)[i]) - row.joint.center[i]);
  return error;
}

/// What a change of sm_scale does to O, per its relative size: logits are logarithms of weights.
std::vector<double> of_scale(const RowProblem &problem, const RowReference &row) {
  std::vector<double> error(row.o.size());
  for (size_t j = 0; j < row.joint.keys.size(); ++j) {
    const double share = row.joint.keys[j].share;
    const double factor = share > 0.0 ? share * std::log(share) * row.joint.scale : 0.0;
    for (size_t i = 0; i < error.size(); ++i)
      error[i] += factor * (static_cast<double>(problem.keys->value(j)[i]) - row.joint.center[i]);
  }
  return error;
}

double median_of(std::vector<double> values) {
  std::erase_if(values, [](double x) { return std::isnan(x); });
  if (values.empty()) return NAN;
  const auto middle = values.begin() + static_cast<int64_t>(values.size() / 2);
  std::nth_element(values.begin(), middle, values.end());
  return *middle;
}

double least_of(double a, double b) {
  return std::isnan(a) ? b : std::isnan(b) ? a : std::min(a, b);
}

} // namespace

Sharpness sharpness_of(const RowProblem &problem, const RowReference &row) {
  constexpr size_t kKeys = 5;
  if (!row.claim || !row.joint.applies()) return {};
  std::vector<double> o(row.o.size()), lost;
  for (size_t i = 0; i < o.size(); ++i)
    o[i] = row.o[i].mid;
  const double spread = spread_of(problem.keys->v.data(), row.joint);
  const size_t keys = problem.keys->visible();
  for (size_t i = 0; i < std::min(kKeys, keys); ++i)
    lost.push_back(limit_of(problem, row, spread,
                            of_lost_key(problem, row, keys * (2 * i + 1) / (2 * kKeys))));
  return {.scaling = limit_of(problem, row, spread, o),
          .sm_scale = limit_of(problem, row, spread, of_scale(problem, row)),
          .lost_weight = median_of(lost)};
}

Sharpness sharpness_of(const CallRows &rows, const KernelModel &model,
                       std::span<const int> chosen) {
  constexpr size_t kMost = 8, kOneIn = 16;
  const auto *attention = std::get_if<AttentionRows>(&rows);
  if (attention == nullptr || chosen.empty()) return {};
  const auto heads = static_cast<size_t>(attention->out.heads);
  const size_t pairs = chosen.size() * heads;
  const size_t looked = std::clamp<size_t>(pairs / kOneIn, 1, kMost);
  AttentionReader reader(*attention, model, {});
  Sharpness all;
  std::vector<double> lost;
  for (size_t i = 0; i < looked; ++i) {
    const size_t at = pairs * (2 * i + 1) / (2 * looked);
    RowProblem problem = reader.problem(chosen[at / heads], static_cast<int>(at % heads));
    problem.order = nullptr; // whose bounds are sharper still
    const Sharpness one = sharpness_of(problem, attention_row(problem));
    all.scaling = least_of(all.scaling, one.scaling);
    all.sm_scale = least_of(all.sm_scale, one.sm_scale);
    lost.push_back(one.lost_weight);
  }
  all.lost_weight = median_of(lost);
  if (!(all.lost_weight < 1.0)) all.lost_weight = NAN; // no key weighs as much
  return all;
}

} // namespace assay::oracle
