// SPDX-License-Identifier: Apache-2.0
#include "oracle/bounds/row_work.h"

#include <algorithm>
#include <cmath>

#include "oracle/bounds/key_formulas.h"
#include "oracle/exact/dtype.h"
#include "oracle/exact/sums.h"

namespace assay::oracle {
namespace {

// What subnormal operands add to the magnitude that addends are aligned by: such an operand may
// carry the exponent of the smallest normal one.
double alignment_excess(const RowProblem &problem, const RowWork &work, const float *k) {
  double least_k = std::ldexp(1.0, format_of(problem.operand()).min_exponent);
  if (problem.rounds_kv()) least_k /= problem.features.k_scale;
  const double least_q = work.q_least;
  double sum = 0.0;
  for (size_t i = 0; i < problem.q.size(); ++i) {
    const double a = std::fabs(problem.q[i]), b = std::fabs(k[i]);
    if (a == 0.0 || b == 0.0 || (a >= least_q && b >= least_k)) continue;
    sum += std::max(a, least_q) * std::max(b, least_k);
  }
  return sum;
}

double key_magnitude(const KeySet &keys, size_t j) {
  double sum = 0.0;
  for (int i = 0; i < keys.head_dim; ++i)
    sum += std::fabs(static_cast<double>(keys.key(j)[i]));
  return sum;
}

// x_j, its own error and the kernel's error; false when fp32 may overflow.
bool compute_logits(const RowProblem &problem, RowWork &work, const std::vector<double> *scores) {
  const KeySet &keys = *problem.keys;
  const bool align = problem.rounds_kv() ||
                     std::any_of(problem.q.begin(), problem.q.end(),
                                 [&](float x) { return x != 0.0f && std::fabs(x) < work.q_least; });
  for (size_t j = 0; j < keys.size(); ++j) {
    const bool sink = j >= keys.visible();
    const DotResult s = dot(work.q.data(), keys.key(j), keys.head_dim);
    KeyFacts key{.distance = key_distance(problem, j),
                 .head_dim = keys.head_dim,
                 .exact = scores != nullptr};
    if (!scores && (align || keys.k_subnormal[j]))
      key.excess = alignment_excess(problem, work, keys.key(j));
    if (work.q_error > 0.0) key.key_magnitude = key_magnitude(keys, j);
    Logit logit;
    if (!key_logit(work, {scores ? (*scores)[j] : s.value, s.magnitude}, key, logit)) return false;
    if (sink) logit = sink_logit(problem.features);
    if (!(std::fabs(logit.x) + logit.error < kFp32Limit)) return false;
    work.x[j] = logit.x;
    work.x_radius[j] = logit.radius;
    work.x_error[j] = logit.error;
  }
  return true;
}

// K and V behind their scales stay finite where they are rounded.
bool fits_rounded(const RowProblem &problem) {
  const KeySet &keys = *problem.keys;
  const double limit = format_of(problem.operand()).max_finite * 0.99;
  double v = 0.0, k = 0.0;
  for (size_t i = 0; i < keys.v_max.size(); ++i)
    v = std::max({v, std::fabs(static_cast<double>(keys.v_max[i])),
                  std::fabs(static_cast<double>(keys.v_min[i]))});
  for (float x : keys.k)
    k = std::max(k, std::fabs(static_cast<double>(x)));
  return k * problem.features.k_scale < limit && v * std::fabs(problem.features.v_scale) < limit;
}

// The scale, and what becomes of Q; false when the kernel's scale may leave the fp32 range.
bool prepare_query(const RowProblem &problem, RowWork &work) {
  work.q.assign(problem.q.begin(), problem.q.end());
  double largest = 0.0;
  for (double x : work.q) {
    largest = std::max(largest, std::fabs(x));
    work.q_sum += std::fabs(x);
  }
  if (!scale_query(work, problem.sm_scale, problem.dtype == ASSAY_BF16, largest)) return false;
  return !problem.rounds_kv() || fits_rounded(problem);
}

void compute_weights(RowWork &work) {
  const size_t n = work.x.size();
  work.x_max = *std::max_element(work.x.begin(), work.x.end());
  double weighted_error = 0.0;
  for (size_t j = 0; j < n; ++j) {
    KeyWeight key;
    weigh_key(work.x_max, work.logit(j), key);
    work.weight[j] = key.weight;
    work.z += key.weight;
    if (key.weight > 0.0) work.weight_error = std::max(work.weight_error, key.error);
    weighted_error += key.weight * key.error;
    work.x_abs = std::max(work.x_abs, std::fabs(work.x[j]) + work.x_radius[j] + work.x_error[j]);
    work.x_error_max = std::max(work.x_error_max, work.x_error[j] + work.x_radius[j]);
  }
  work.mass_error = weighted_error / work.z * kSlack;
  work.coarse = !(work.weight_error < 0x1p-20);
}

void compute_omega(RowWork &work) {
  const OmegaRow common = omega_row(work);
  double mean = 0.0, low = 0.0;
  for (size_t j = 0; j < work.x.size(); ++j) {
    KeyWeight key;
    key.weight = work.weight[j];
    bound_key(work, common, work.logit(j), key);
    work.omega[j] = key.omega;
    work.weight_low[j] = key.low;
    low += key.low;
    work.log_omega_max = std::max(work.log_omega_max, key.log_omega);
    work.vague = work.vague || key.vague;
    mean += key.weight * key.omega;
  }
  work.omega_mean = work.vague ? INFINITY : mean / work.z * kSlack;
  work.mass_low = low / work.z / kSlack;
}

const char *reason_of(NoClaim none) {
  if (none == NoClaim::kLogits) return "logits too large for fp32 softmax";
  if (none == NoClaim::kNarrowSum) return "logits too large for a row sum of that format";
  if (none == NoClaim::kWeightLimit) return "a weight may leave the format that it is rounded to";
  if (none == NoClaim::kRoundings) return "too many roundings in a row sum";
  return "the row sum may leave its format";
}

} // namespace

std::string unclaimed_features(const RowFeatures &features) {
  constexpr double kSmallestCap = 0x1p-100, kLargestCap = 0x1p100;
  const double cap = features.softcap;
  if (cap != 0.0 && !(cap > kSmallestCap && cap < kLargestCap))
    return "softcap outside the range in which its inverse is a normal fp32";
  if (!std::isfinite(features.slope)) return "ALiBi slope is not finite";
  if (features.sinks && !(features.sink < INFINITY)) return "sink is NaN or infinite";
  if (!std::isfinite(features.k_scale) || !std::isfinite(features.v_scale))
    return "KV scale is not finite";
  return "";
}

RowFacts facts_of(const RowProblem &problem) {
  RowFacts facts;
  facts.features = problem.features;
  facts.output = format_of(problem.output());
  facts.operand = format_of(problem.operand());
  facts.output_fp8 = is_fp8(problem.output());
  facts.rounds_kv = problem.rounds_kv();
  const bool tf32 = problem.arithmetic.kv_format == ASSAY_FORMAT_TF32;
  facts.kv = tf32 ? *rounding_of(ASSAY_FORMAT_TF32, problem.dtype) : facts.operand;
  const Format *narrow = rounding_of(problem.arithmetic.output_format, problem.dtype);
  facts.narrows = narrow != nullptr;
  if (narrow != nullptr) facts.narrow = *narrow;
  facts.rounded_before_scale = problem.arithmetic.rounded_before_scale != 0;
  facts.natural_lse = problem.lse_base == ASSAY_LSE_BASE_E;
  if (problem.keys != nullptr) {
    facts.keys = static_cast<int64_t>(problem.keys->size());
    facts.v_subnormal = problem.keys->v_subnormal;
  }
  return facts;
}

ErrorModel model_of(const RowProblem &problem, int head_dim) {
  ErrorModel model = make_error_model(problem.arithmetic, problem.operand(), head_dim);
  const assay_dtype output = problem.output();
  const bool wide = output == ASSAY_FP32 && problem.arithmetic.partial_format == ASSAY_FORMAT_CALL;
  store_partials(model, wide ? nullptr : rounding_of(problem.arithmetic.partial_format, output));
  return model;
}

RowShape shape_of_row(const RowProblem &problem, const ErrorModel &model, size_t keys) {
  // A sink is a split of its own and one more merge.
  const int sinks = problem.features.sinks ? 1 : 0;
  const int stages = problem.combine_stages + sinks;
  RowShape shape = problem.order
                       ? shape_of(model, *problem.order, stages)
                       : shape_without_order(model, keys, static_cast<size_t>(problem.span),
                                             problem.max_splits + sinks, stages);
  shape.splits = std::max(shape.splits, 1 + sinks);
  shape.stored = std::min(problem.combine_stages, problem.arithmetic.stored_merges);
  return shape;
}

std::string prepare_row(const RowProblem &problem, RowWork &work,
                        const std::vector<double> *scores) {
  const KeySet &keys = *problem.keys;
  const size_t n = keys.size();
  work.model = model_of(problem, keys.head_dim);
  work.shape = shape_of_row(problem, work.model, n);
  work.facts = facts_of(problem);
  if (std::string reason = unclaimed_features(problem.features); !reason.empty()) return reason;
  if (!prepare_query(problem, work))
    return "softmax scale outside the normal fp32 range, or Q outside that of its format";
  for (auto *array :
       {&work.x, &work.x_radius, &work.x_error, &work.weight, &work.weight_low, &work.omega}) {
    array->assign(n, 0.0);
  }
  if (!compute_logits(problem, work, scores)) return "scores may leave the fp32 range";
  compute_weights(work);
  if (const NoClaim none = bound_sums(work); none != NoClaim::kNone) return reason_of(none);
  compute_omega(work);
  return "";
}

Enclosure lse_of(const RowWork &work, double *lse2) {
  double worst = 0.0;
  for (size_t j = 0; j < work.x.size(); ++j)
    worst = std::max(worst, work.x_radius[j] + (work.x_max - work.x[j]) * 0x1p-53 + 4 * kExp2Error);
  return lse_enclosure(work, worst, lse2);
}

} // namespace assay::oracle
