// SPDX-License-Identifier: Apache-2.0
#include "oracle/row_work.h"

#include <algorithm>
#include <cmath>

#include "oracle/dtype.h"
#include "oracle/sums.h"

namespace assay::oracle {
namespace {

constexpr double kU53 = 0x1p-53;
constexpr double kExp2Error = 0x1p-50; // of the C library's exp2, with room; certified by the tests
constexpr double kMaxRoundedLogit = 8.0;
constexpr double kUnderflow = 1000.0; // weights below 2^-1000 count as an absolute error

// What subnormal operands add to the magnitude that addends are aligned by: such an operand may
// carry the exponent of the smallest normal one.
double alignment_excess(const RowProblem &problem, const float *k) {
  const double least = std::ldexp(1.0, format_of(problem.dtype).min_exponent);
  double sum = 0.0;
  for (size_t i = 0; i < problem.q.size(); ++i) {
    const double a = std::fabs(problem.q[i]), b = std::fabs(k[i]);
    if (a == 0.0 || b == 0.0 || (a >= least && b >= least)) continue;
    sum += std::max(a, least) * std::max(b, least);
  }
  return sum;
}

bool query_subnormal(const RowProblem &problem) {
  const Format &format = format_of(problem.dtype);
  return std::any_of(problem.q.begin(), problem.q.end(),
                     [&](float x) { return is_subnormal(format, x); });
}

// x_j, its own error and the kernel's score error; false when fp32 may overflow.
bool compute_logits(const RowProblem &problem, RowWork &work, const std::vector<double> *scores) {
  const KeySet &keys = *problem.keys;
  const int d = keys.head_dim;
  const bool align = query_subnormal(problem);
  for (size_t j = 0; j < keys.size(); ++j) {
    const DotResult s = dot(work.q.data(), keys.key(j), d);
    const double value = scores ? (*scores)[j] : s.value;
    // Any partial sum, in any order, is at most the positive or the negative products together.
    double magnitude = 0.5 * (s.magnitude + std::fabs(s.value)) * kSlack;
    if (align || keys.k_subnormal[j]) magnitude += alignment_excess(problem, keys.key(j));
    const double x = work.scale * value;
    work.x[j] = x;
    work.x_radius[j] =
        ((scores ? 0.0 : work.scale * d * kU53 * s.magnitude) + std::fabs(x) * 4 * kU53) * kSlack;
    work.x_error[j] =
        scores ? 0.0 : work.scale * (work.model.dot * magnitude + work.model.dot_floor) * kSlack;
    if (!(s.magnitude < kFp32Limit) || !(std::fabs(x) + work.x_error[j] < kFp32Limit)) return false;
  }
  return true;
}

void compute_weights(RowWork &work) {
  const size_t n = work.x.size();
  work.x_max = *std::max_element(work.x.begin(), work.x.end());
  double weighted_error = 0.0;
  for (size_t j = 0; j < n; ++j) {
    const double below = work.x_max - work.x[j];
    const double w = below > kUnderflow ? 0.0 : std::exp2(-below);
    const double error = std::expm1(kLn2 * (work.x_radius[j] + below * kU53)) + kExp2Error;
    work.weight[j] = w;
    work.z += w;
    if (w > 0.0) work.weight_error = std::max(work.weight_error, error);
    weighted_error += w * error;
    work.x_abs = std::max(work.x_abs, std::fabs(work.x[j]) + work.x_radius[j] + work.x_error[j]);
    work.x_error_max = std::max(work.x_error_max, work.x_error[j] + work.x_radius[j]);
  }
  work.mass_error = weighted_error / work.z * kSlack;
  work.coarse = !(work.weight_error < 0x1p-20);
}

// Omega_j of oracle/README.md section 3: error of key j's effective weight, up to a common factor.
void compute_omega(RowWork &work) {
  const size_t n = work.x.size();
  const ErrorModel &m = work.model;
  const double factors = 1.0 + static_cast<double>(work.shape.tiles - 1) +
                         (work.shape.states > 1 ? 1.0 : 0.0) + work.shape.stages;
  const double exp2_errors = factors * std::log1p(m.exp2);
  // One rounding of c * m; where states merge, maxima may have been rounded on both sides once
  // more.
  const double roundings = work.shape.states > 1 ? 3.0 : 1.0;
  const double shared = roundings * kU * work.x_abs + 0x1p-100;
  double mean = 0.0, low = 0.0;
  for (size_t j = 0; j < n; ++j) {
    const double score = work.x_error[j] + work.x_radius[j];
    const double below = work.x_max - work.x[j] + score + work.x_error_max;
    double eta = score + (kScaleError + 2 * kU) * kSlack * below + shared;
    if (work.shape.stages > 0) {
      eta += work.shape.stages * combine_exponent_error(work, below, static_cast<double>(n));
    }
    eta *= kSlack;
    double omega = std::expm1(kLn2 * eta + exp2_errors) * kSlack;
    const bool flushed = below + eta >= kFlushExponent;
    if (flushed) omega = std::max(omega, 1.0);
    work.omega[j] = omega;
    mean += work.weight[j] * omega;
    if (!flushed) low += work.weight[j] / (1.0 + omega);
  }
  work.omega_mean = mean / work.z * kSlack;
  work.mass_low = low / work.z / kSlack;
  work.sum_low = std::exp2(-kU * work.x_abs * 1.5) * (1.0 - factors * m.exp2) * 0.999;
}

} // namespace

std::string prepare_row(const RowProblem &problem, RowWork &work,
                        const std::vector<double> *scores) {
  const KeySet &keys = *problem.keys;
  const size_t n = keys.size();
  work.model = make_error_model(problem.arithmetic, problem.dtype, keys.head_dim);
  work.shape = problem.order
                   ? shape_of(work.model, *problem.order, problem.combine_stages)
                   : shape_without_order(work.model, n, problem.max_splits, problem.combine_stages);
  work.scale = static_cast<double>(problem.sm_scale) * kLog2E;
  if (!(work.scale > 2 * kFloor) || !(work.scale < kFp32Limit)) {
    return "softmax scale outside the normal fp32 range";
  }
  work.q.assign(problem.q.begin(), problem.q.end());
  for (auto *array : {&work.x, &work.x_radius, &work.x_error, &work.weight, &work.omega}) {
    array->assign(n, 0.0);
  }
  if (!compute_logits(problem, work, scores)) return "scores may leave the fp32 range";
  compute_weights(work);
  // The maximum's own weight is 2^(rounding of c * m): beyond this it says nothing any more.
  if (kU * work.x_abs > kMaxRoundedLogit) return "logits too large for fp32 softmax";
  compute_omega(work);
  return "";
}

TailErrors tail_errors(const ErrorModel &m, const RowShape &shape) {
  const double log_u = std::log1p(kU);
  const double merges = shape.states > 1 ? shape.states + 1.0 : 0.0;
  const double tiles = static_cast<double>(shape.tiles);
  const double splits = shape.splits;
  TailErrors t{};
  t.pv =
      std::expm1(static_cast<double>(shape.pv_blocks) * std::log1p(m.kappa) + (tiles - 1) * log_u);
  const double numerator = merges + shape.stages * (splits + 1);
  t.merge = (1.0 + t.pv) * std::expm1(numerator * log_u);
  const double block_sum = std::expm1((m.sum_depth + 2 * tiles + merges) * log_u);
  t.row_sum = std::expm1((m.sum_depth + 2 * tiles + merges + shape.stages * splits) * log_u);
  const double one = (1.0 + m.rcp) * (1.0 + kU);
  t.normalise = one / (1.0 - std::min(block_sum, 0.5)) - 1.0;
  const double all = std::pow(one, 1.0 + shape.stages) / (1.0 - std::min(t.row_sum, 0.5)) - 1.0;
  t.combine = all - t.normalise;
  t.floor = kFloor * (3 * tiles + static_cast<double>(shape.pv_blocks) + 2 * merges + 4 +
                      shape.stages * (2 * splits + 4));
  return t;
}

double underflow_budget(const KeySet &keys, const RowWork &work, const TailErrors &tail,
                        double largest_value) {
  double floor = tail.floor + static_cast<double>(keys.size()) * kFloor * largest_value;
  if (keys.v_subnormal) {
    floor += static_cast<double>(work.shape.pv_blocks) * work.model.alignment * work.model.p_normal;
  }
  return floor / work.sum_low;
}

bool overflow_possible(const RowWork &work, double largest_value) {
  const double largest_weight = std::exp2(1.5 * kU * work.x_abs);
  return static_cast<double>(work.x.size()) * largest_weight * largest_value * 1.01 >= kFp32Limit;
}

double combine_exponent_error(const RowWork &work, double below_max, double keys) {
  const double log_sum = std::log2(keys) + 0.01 + 2 * kU * work.x_abs;
  const double lse = work.x_abs + log_sum;
  const double partial = kU * work.x_abs + kU * lse + work.model.log2 * (1.0 + log_sum);
  return (partial + kU * (below_max + 2 * log_sum + 1.0)) * kSlack;
}

double lse_budget(const RowProblem &problem, const RowWork &work, double lse2) {
  const TailErrors tail = tail_errors(work.model, work.shape);
  const double n = static_cast<double>(work.x.size());
  const double log_sum = std::log2(n) + 0.01 + 2 * kU * work.x_abs;
  const double weights = std::max(std::log1p(work.omega_mean) / kLn2, -std::log2(work.mass_low));
  const double rounded_max = work.shape.stages > 0 ? 0.0 : kU * work.x_abs;
  double bound = weights + kScaleError * work.x_abs -
                 std::log1p(-std::min(tail.row_sum, 0.5)) / kLn2 + rounded_max +
                 work.model.log2 * (1.0 + log_sum);
  bound += kU * (std::fabs(lse2) + bound);
  if (problem.lse_base == ASSAY_LSE_NATURAL) {
    // The fp32 constant ln 2 and the product: at most one rounding each.
    bound = kLn2 * (bound + 2 * kU * (std::fabs(lse2) + bound));
  }
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
