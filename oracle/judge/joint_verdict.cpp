// SPDX-License-Identifier: Apache-2.0
#include "oracle/judge/joint_verdict.h"

#include <algorithm>
#include <cmath>
#include <numeric>

#include "oracle/exact/sums.h"

namespace assay::oracle {
namespace {

constexpr int kReweightings = 3, kGradients = 6;

/// With length 1; empty where that cannot be.
std::vector<double> normalised(std::vector<double> u) {
  double square = 0.0, largest = 0.0;
  for (const double x : u)
    largest = std::max(largest, std::fabs(x));
  if (!(largest > 0.0) || !std::isfinite(largest)) return {};
  for (double &x : u) {
    x /= largest;
    square += x * x;
  }
  for (double &x : u)
    x /= std::sqrt(square);
  return u;
}

/// The quadratic form that is J's square near u, up to a factor: |x| is x^2 / |x|, with the |x| of
/// u below.
class NearForm {
public:
  NearForm(const float *v, const JointRow &row, std::span<const double> u)
      : v_(v), dims_(u.size()), keys_(row.keys.size()), diagonal_(u.size()), products_(keys_) {
    along(v_, keys_, static_cast<int>(dims_), u.data(), products_.data());
    double size = 0.0, mean = 0.0;
    for (const double x : products_)
      mean += std::fabs(x) / static_cast<double>(keys_);
    for (const double x : u)
      size += std::fabs(x) / static_cast<double>(dims_);
    for (size_t i = 0; i < dims_; ++i)
      diagonal_[i] =
          (row.elements[i] + row.accumulation[i]) / std::max(std::fabs(u[i]), kLeast * size);
    for (size_t j = 0; j < keys_; ++j)
      stiffness_.push_back(
          (row.keys[j].error + row.p_unit * row.keys[j].share + row.keys[j].subnormal) * row.scale /
          std::max(std::fabs(products_[j]), kLeast * mean));
  }

  std::vector<double> times(const std::vector<double> &u) {
    std::vector<double> result(dims_);
    along(v_, keys_, static_cast<int>(dims_), u.data(), products_.data());
    for (size_t j = 0; j < keys_; ++j)
      products_[j] *= stiffness_[j];
    weighted_sums(v_, keys_, static_cast<int>(dims_), products_.data(), result.data());
    for (size_t i = 0; i < dims_; ++i)
      result[i] += diagonal_[i] * u[i];
    return result;
  }

private:
  static constexpr double kLeast = 1e-3; // of the mean: what is 0 along u need not stay so
  const float *v_;
  size_t dims_, keys_;
  std::vector<double> diagonal_, stiffness_, products_;
};

double product(const std::vector<double> &a, const std::vector<double> &b) {
  return std::inner_product(a.begin(), a.end(), b.begin(), 0.0);
}

/// Solves form u = error, nearly, by conjugate gradients: u.error is then the largest for its size.
std::vector<double> solved(NearForm &form, const std::vector<double> &error) {
  std::vector<double> u(error.size()), rest = error, step = error;
  double square = product(rest, rest);
  for (int i = 0; i < kGradients; ++i) {
    const std::vector<double> moved = form.times(step);
    const double length = square / product(step, moved);
    for (size_t at = 0; at < u.size(); ++at) {
      u[at] += length * step[at];
      rest[at] -= length * moved[at];
    }
    const double left = product(rest, rest);
    if (!(left > 1e-12 * square) || !std::isfinite(left)) break;
    for (size_t at = 0; at < u.size(); ++at)
      step[at] = rest[at] + left / square * step[at];
    square = left;
  }
  return u;
}

/// Errors of the elements that have a claim, of length 1; empty where there are none.
std::vector<double> error_of(const RowReference &row, const float *o) {
  std::vector<double> u(row.o.size());
  for (size_t i = 0; i < u.size(); ++i)
    if (!row.t0[i].overflow_possible && std::isfinite(o[i]))
      u[i] = static_cast<double>(o[i]) - row.o[i].mid;
  return normalised(std::move(u));
}

Direction look_along(const float *v, const RowReference &row, const float *o, std::vector<double> u,
                     double &spread) {
  Direction seen;
  double size = 0.0; // of the terms, which rounding of these sums is relative to
  for (size_t i = 0; i < u.size(); ++i) {
    if (u[i] == 0.0) continue;
    const double got = o[i];
    seen.got += u[i] * got;
    seen.exact.mid += u[i] * row.o[i].mid;
    seen.exact.rad += std::fabs(u[i]) * row.o[i].rad;
    size += std::fabs(u[i]) * (std::fabs(got) + std::fabs(row.o[i].mid));
  }
  seen.exact.rad = seen.exact.rad * kSlack + size * static_cast<double>(u.size()) * 0x1p-50;
  seen.allowed = joint_bound(v, row.joint, u, spread);
  // Only then does it matter how long partial sums of P.V really are.
  const double least = seen.allowed.total - seen.allowed.accumulation;
  if (!std::isfinite(spread) && std::fabs(seen.got - seen.exact.mid) > kNearlyOutside * least) {
    spread = spread_of(v, row.joint);
    seen.allowed = joint_bound(v, row.joint, u, spread);
  }
  seen.u = std::move(u);
  return seen;
}

/// u.(O - O'), as an interval.
Interval error_along(const std::function<Interval(int dim)> &exact, const float *o,
                     std::span<const double> u, int precision) {
  Interval total(precision);
  for (size_t i = 0; i < u.size(); ++i) {
    if (u[i] == 0.0) continue;
    Interval error = exact(static_cast<int>(i));
    error -= static_cast<double>(o[i]);
    error *= u[i];
    total += error;
  }
  return total;
}

} // namespace

Direction farthest_direction(const float *v, const RowReference &row, const float *o) {
  if (!row.joint.applies()) return {};
  std::vector<double> u = error_of(row, o);
  if (u.empty()) return {};
  const std::vector<double> error = u;
  double spread = INFINITY;
  Direction best = look_along(v, row, o, std::move(u), spread);
  for (int i = 0; i < kReweightings && best.ratio() > kNearlyOutside && best.ratio() < 1.0; ++i) {
    NearForm form(v, row.joint, best.u);
    std::vector<double> better = normalised(solved(form, error));
    if (better.empty()) break;
    for (size_t at = 0; at < better.size(); ++at)
      if (error[at] == 0.0) better[at] = 0.0; // it may have no claim
    Direction seen = look_along(v, row, o, std::move(better), spread);
    if (!(seen.ratio() > best.ratio())) break;
    best = std::move(seen);
  }
  return best;
}

void judge_joint(Report &report, const float *v, const RowReference &row, const float *o,
                 const ExactOutputs &exact, int request, int head) {
  const Direction seen = farthest_direction(v, row, o);
  if (seen.u.empty() || !std::isfinite(seen.allowed.total)) return;
  const auto error = [&](int precision) {
    return error_along(exact(precision), o, seen.u, precision);
  };
  const Decision decision =
      decide(0.0f, {seen.exact.mid - seen.got, seen.exact.rad}, seen.allowed.total, error);
  report.add_row_ratio(seen.ratio(), decision.escalated);
  if (decision.verdict == Verdict::kInside) return;
  ElementReport whole;
  whole.request = request;
  whole.head = head;
  whole.dim = ElementReport::kRow;
  whole.got = static_cast<float>(seen.got);
  whole.reference = seen.exact;
  whole.budget.weights = seen.allowed.weights;
  whole.budget.p_rounding = seen.allowed.rounding;
  whole.budget.normalisation = seen.allowed.normalisation;
  whole.budget.accumulation = seen.allowed.accumulation;
  whole.budget.output_rounding = seen.allowed.elements;
  whole.budget.total = seen.allowed.total;
  whole.ratio = seen.ratio();
  whole.verdict = decision.verdict;
  whole.reason = decision.verdict == Verdict::kOutside ? Reason::kRow : Reason::kUndecided;
  report.add(whole);
}

} // namespace assay::oracle
