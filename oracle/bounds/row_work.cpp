// SPDX-License-Identifier: Apache-2.0
#include "oracle/bounds/row_work.h"

#include <algorithm>
#include <cmath>

#include "oracle/bounds/logit_map.h"
#include "oracle/exact/dtype.h"
#include "oracle/exact/sums.h"

namespace assay::oracle {
namespace {

constexpr double kU53 = 0x1p-53;
constexpr double kMaxRoundedLogit = 8.0;
constexpr double kMaxNarrowSumLogit = 0.5; // a row sum is then at least half its largest weight
constexpr double kMaxRowSumError = 8.0;
constexpr double kUnderflow = 1000.0; // weights below 2^-1000 count as an absolute error
constexpr double kVagueWeight = 0x1p64;

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

// Of an fp8 value times its scale in a format of 16 bits. There is none where the scale is a power
// of two, as fp8 has fewer bits, but for what falls below the format's smallest normal value (half
// a step).
double rounding_of_scaled(const RowProblem &problem, const Format &format, float scale) {
  int exponent = 0;
  const bool exact =
      problem.features.scale_blocks == 0 && std::fabs(std::frexp(scale, &exponent)) == 0.5f;
  return exact ? 0.0 : format.unit_roundoff;
}

// The kernel's score error, before the scale.
double score_error(const RowProblem &problem, const RowWork &work, size_t j, const DotResult &s,
                   bool align) {
  const KeySet &keys = *problem.keys;
  // Any partial sum, in any order, is at most the positive or the negative products together.
  double magnitude = 0.5 * (s.magnitude + std::fabs(s.value)) * kSlack;
  if (align || keys.k_subnormal[j]) magnitude += alignment_excess(problem, work, keys.key(j));
  double query = 0.0;
  if (work.q_error > 0.0) query = work.q_error * key_magnitude(keys, j) * kSlack;
  double key = 0.0;
  if (problem.rounds_kv()) {
    const Format &format = format_of(problem.operand());
    key = (rounding_of_scaled(problem, format, problem.features.k_scale) * s.magnitude +
           half_ulp(format, 0.0) / problem.features.k_scale * work.q_sum) *
          kSlack;
  }
  return work.model.dot * (magnitude + query + key) + query + key + work.model.dot_floor;
}

// A score in its declared format; false when it may be infinite there.
bool add_score_rounding(const RowWork &work, const DotResult &s, Logit &logit) {
  const ErrorModel &m = work.model;
  if (m.score_unit == 0.0) return true;
  logit.error = (logit.error + m.score_unit * (std::fabs(logit.x) + logit.error) +
                 m.score_floor * std::max(work.scale, kLog2E)) *
                kSlack;
  const double size =
      std::max(std::fabs(s.value) + s.magnitude * m.dot, std::fabs(logit.x) + logit.error);
  return size * 1.01 < m.score_limit;
}

// x_j, its own error and the kernel's error; false when fp32 may overflow.
bool compute_logits(const RowProblem &problem, RowWork &work, const std::vector<double> *scores) {
  const KeySet &keys = *problem.keys;
  const int d = keys.head_dim;
  const bool align = problem.rounds_kv() ||
                     std::any_of(problem.q.begin(), problem.q.end(),
                                 [&](float x) { return x != 0.0f && std::fabs(x) < work.q_least; });
  for (size_t j = 0; j < keys.size(); ++j) {
    const bool sink = j >= keys.visible();
    const DotResult s = dot(work.q.data(), keys.key(j), d);
    const double value = scores ? (*scores)[j] : s.value;
    Logit logit;
    logit.x = work.scale * value;
    logit.radius =
        ((scores ? 0.0 : work.scale * d * kU53 * s.magnitude) + std::fabs(logit.x) * 4 * kU53) *
        kSlack;
    if (!scores) logit.error = work.scale * score_error(problem, work, j, s, align) * kSlack;
    // Ours is of elements that were rounded once; a kernel's rounds a block's sum, and adds blocks.
    logit.radius += work.scale * work.kv_unit * s.magnitude * kSlack;
    logit.error +=
        work.scale * work.kv_unit * (1 + problem.features.scale_blocks) * s.magnitude * kSlack;
    if (!add_score_rounding(work, s, logit)) return false;
    // Scaled queries keep scores of fp8 keys far inside the range.
    if (!problem.features.fp8 && !(s.magnitude < kFp32Limit)) return false;
    if (!(std::fabs(logit.x) + logit.error < kFp32Limit)) return false;
    const double distance = key_distance(problem, j);
    logit = sink ? sink_logit(problem.features)
                 : map_logit(problem.features, work.model, work.scale_error, logit, distance);
    if (!(std::fabs(logit.x) + logit.error < kFp32Limit)) return false;
    work.x[j] = logit.x;
    work.x_radius[j] = logit.radius;
    work.x_error[j] = logit.error;
  }
  return true;
}

bool normal_fp32(double x) { return x > 2 * kFloor && x < kFp32Limit; }

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
  const RowFeatures &features = problem.features;
  work.q.assign(problem.q.begin(), problem.q.end());
  work.q_least = std::ldexp(1.0, format_of(problem.operand()).min_exponent);
  const double scale = static_cast<double>(problem.sm_scale) * kLog2E;
  work.scale = static_cast<double>(problem.sm_scale) * features.k_scale * features.q_scale * kLog2E;
  work.kv_unit = features.scale_blocks > 0 ? kU * kSlack : 0.0;
  work.scale_error = kScaleError + (features.fp8 ? kU : 0.0) + (features.q_scaled ? kU : 0.0);
  if (!normal_fp32(scale) || !normal_fp32(work.scale)) return false;
  double largest = 0.0;
  for (float x : problem.q)
    largest = std::max(largest, std::fabs(static_cast<double>(x)));
  work.q_error = work.model.q_error * largest;
  for (double x : work.q)
    work.q_sum += std::fabs(x);
  if (problem.rounds_kv()) return fits_rounded(problem);
  if (!features.fp8 || largest == 0.0) return true;
  // Q is multiplied by 2^(14 - e), the scale by its inverse.
  const int exponent = std::ilogb(largest);
  const double least = std::ldexp(work.q_least, exponent - 14);
  // An fp16 or fp8 query may stay as it is: the larger of the two covers both.
  work.q_least = problem.dtype == ASSAY_BF16 ? least : std::max(work.q_least, least);
  const double undo = std::ldexp(1.0, exponent - 14);
  work.model.dot_floor *= std::max(1.0, undo);
  work.model.score_floor *= std::max(1.0, undo);
  work.model.score_limit *= std::min(1.0, undo);
  return normal_fp32(std::ldexp(work.scale, exponent - 14));
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

// Exponentials that one key's weight meets: its own, the rescales, the merges.
double exp2_factors(const RowShape &shape) {
  return static_cast<double>(shape.tiles) + (shape.states > 1 ? 1.0 : 0.0) + shape.stages;
}

// Limits of a kernel's row sums, on their own scale. The key at the maximum counts 2^(+-uX) within
// the error of one exponential, and is rescaled by ex2(0) = 1 from then on; no key counts more than
// that with all its factors at their upper end.
void bound_row_sums(RowWork &work) {
  const ErrorModel &m = work.model;
  const double roundings = tail_errors(m, work.shape).row_sum / kLn2;
  const double lost = -std::log1p(-m.exp2) / kLn2 + roundings;
  const double gained = exp2_factors(work.shape) * std::log1p(m.exp2) / kLn2 + roundings;
  const double rounded_max = 1.5 * kU * work.x_abs;
  work.sum_low = std::exp2(-rounded_max - lost) * 0.999;
  work.largest_weight = std::exp2(rounded_max + gained) * 1.01;
  work.log_sum = std::log2(static_cast<double>(work.x.size())) + std::max(lost, gained) +
                 2 * kU * work.x_abs + 0.01;
}

// Omega_j of oracle/README.md section 3: error of key j's effective weight, up to a common factor,
// and the factor's lower limit. An exponential that is always low by eps_x gives (1 - eps_x)^R,
// which is less than 1 / (1 + Omega).
void compute_omega(RowWork &work) {
  const size_t n = work.x.size();
  const ErrorModel &m = work.model;
  const double factors = exp2_factors(work.shape);
  const double up = factors * std::log1p(m.exp2), down = factors * std::log1p(-m.exp2);
  // One rounding of c * m; where states merge, maxima may have been rounded on both sides once
  // more.
  const double roundings = work.shape.states > 1 ? 3.0 : 1.0;
  const double shared = roundings * kU * work.x_abs + 0x1p-100;
  double mean = 0.0, low = 0.0;
  for (size_t j = 0; j < n; ++j) {
    const double score = work.x_error[j] + work.x_radius[j];
    const double below = work.x_max - work.x[j] + score + work.x_error_max;
    double eta = score + (work.scale_error + 2 * kU + m.conversion) * kSlack * below + shared;
    if (work.shape.stages > 0) {
      eta += work.shape.stages * combine_exponent_error(work, below);
    }
    eta *= kSlack;
    if (work.x_max - work.x[j] - eta > kCertainlyFlushed) {
      work.omega[j] = 1.0;
      continue;
    }
    double omega = std::expm1(kLn2 * eta + up) * kSlack;
    const bool flushed = below + eta >= kFlushExponent;
    if (flushed) omega = std::max(omega, 1.0);
    work.weight_low[j] = flushed ? 0.0 : work.weight[j] * std::exp(down - kLn2 * eta) / kSlack;
    low += work.weight_low[j];
    work.log_omega_max = std::max(work.log_omega_max, eta + up / kLn2);
    // Beyond this a weight may be anything: only convexity is left, which needs no Omega.
    work.vague = work.vague || !(omega < kVagueWeight);
    work.omega[j] = omega = std::min(omega, kVagueWeight);
    mean += work.weight[j] * omega;
  }
  work.omega_mean = work.vague ? INFINITY : mean / work.z * kSlack;
  work.mass_low = low / work.z / kSlack;
}

} // namespace

std::string prepare_row(const RowProblem &problem, RowWork &work,
                        const std::vector<double> *scores) {
  const KeySet &keys = *problem.keys;
  const size_t n = keys.size();
  work.model = make_error_model(problem.arithmetic, problem.operand(), keys.head_dim);
  // A sink is a split of its own and one more merge.
  const assay_dtype output = problem.output();
  const bool wide = output == ASSAY_FP32 && problem.arithmetic.partial_format == ASSAY_FORMAT_CALL;
  store_partials(work.model,
                 wide ? nullptr : rounding_of(problem.arithmetic.partial_format, output));
  const int sinks = problem.features.sinks ? 1 : 0;
  const int stages = problem.combine_stages + sinks;
  work.shape = problem.order ? shape_of(work.model, *problem.order, stages)
                             : shape_without_order(work.model, n, static_cast<size_t>(problem.span),
                                                   problem.max_splits + sinks, stages);
  work.shape.splits = std::max(work.shape.splits, 1 + sinks);
  work.shape.stored = std::min(problem.combine_stages, problem.arithmetic.stored_merges);
  if (std::string reason = unclaimed_features(problem.features); !reason.empty()) return reason;
  if (!prepare_query(problem, work)) return "softmax scale outside the normal fp32 range";
  for (auto *array :
       {&work.x, &work.x_radius, &work.x_error, &work.weight, &work.weight_low, &work.omega}) {
    array->assign(n, 0.0);
  }
  if (!compute_logits(problem, work, scores)) return "scores may leave the fp32 range";
  compute_weights(work);
  // The maximum's own weight is 2^(rounding of c * m): beyond this it says nothing any more.
  if (kU * work.x_abs > kMaxRoundedLogit) return "logits too large for fp32 softmax";
  if (work.model.sum_floor > 0.0 && kU * work.x_abs > kMaxNarrowSumLogit)
    return "logits too large for a row sum of that format";
  // Beyond e^8 a row sum says nothing; rows that long leave the range of every real kernel.
  if (!(tail_errors(work.model, work.shape).row_sum < kMaxRowSumError))
    return "too many roundings in a row sum";
  bound_row_sums(work);
  if (!(static_cast<double>(n) * work.largest_weight < work.model.sum_limit))
    return "the row sum may leave its format";
  compute_omega(work);
  return "";
}

double value_rounding(const RowProblem &problem, double magnitude) {
  const double size = std::fabs(static_cast<double>(problem.features.v_scale));
  if (!problem.rounds_kv() || size == 0.0) return 0.0;
  const Format &format = format_of(problem.operand());
  const double unit = rounding_of_scaled(problem, format, problem.features.v_scale);
  return (unit * magnitude + half_ulp(format, 0.0) / size) * kSlack;
}

double underflow_budget(const RowProblem &problem, const RowWork &work, const TailErrors &tail,
                        double largest_value) {
  const KeySet &keys = *problem.keys;
  double floor = tail.floor + static_cast<double>(keys.size()) * kFloor * largest_value;
  // A partial is stored before or after v_scale, which multiplies this. Rounded V has it inside.
  const double size = std::fabs(static_cast<double>(problem.features.v_scale));
  const bool rounded = problem.rounds_kv() && size > 0.0;
  if (keys.v_subnormal || rounded) {
    floor += static_cast<double>(work.shape.pv_blocks) * work.model.alignment *
             work.model.operand_normal / (rounded ? std::min(size, 1.0) : 1.0);
  }
  const double stored = work.shape.stored * work.model.partial_floor;
  return floor / work.sum_low + (size > 0.0 ? stored * std::max(1.0, 1.0 / size) : stored);
}

bool overflow_possible(const RowProblem &problem, const RowWork &work, double largest_value) {
  const double scaled = largest_value * std::fabs(static_cast<double>(problem.features.v_scale));
  const double summed = std::ldexp(static_cast<double>(work.x.size()), work.model.p_scale_log2) *
                        work.largest_weight * largest_value;
  double limit = work.shape.stored > 0 ? work.model.partial_limit : kFp32Limit;
  if (problem.arithmetic.rounded_before_scale != 0)
    limit = std::min(limit, format_of(problem.output()).max_finite);
  return !(summed < kFp32Limit) || std::max(scaled, largest_value) * 1.01 >= limit;
}

double combine_exponent_error(const RowWork &work, double below_max) {
  const double lse = work.x_abs + work.log_sum;
  const ErrorModel &m = work.model;
  const double partial =
      kU * work.x_abs + kU * lse + m.log2 * (1.0 + work.log_sum) + m.conversion * work.log_sum;
  return (partial + (kU + m.conversion) * (below_max + 2 * work.log_sum + 1.0)) * kSlack;
}

void add_output_rounding(assay_dtype dtype, double magnitude, BudgetTerms &t, double earlier) {
  const double sum =
      t.weights + t.p_rounding + t.accumulation + t.normalisation + t.merge + t.flush;
  t.output_rounding = half_ulp(format_of(dtype), (magnitude + sum + earlier) * kSlack) + earlier;
  t.total = sum * kSlack + t.output_rounding;
}

void finish_output(const RowProblem &problem, Enclosure &o, BudgetTerms &t) {
  const double stored = problem.features.o_scale;
  const double scale = problem.features.v_scale / stored, size = std::fabs(scale);
  double first_rounding = 0.0; // before v_scale
  if (scale != 1.0) {
    const double sum =
        t.weights + t.p_rounding + t.accumulation + t.normalisation + t.merge + t.flush;
    if (problem.arithmetic.rounded_before_scale != 0 && problem.features.v_scale != 1.0f)
      first_rounding =
          size * half_ulp(format_of(problem.output()), (std::fabs(o.mid) + o.rad + sum) * kSlack);
    o.mid *= scale;
    o.rad = (o.rad * size + std::fabs(o.mid) * 3 * kU53) * kSlack + 0x1p-1000;
    for (double *term :
         {&t.weights, &t.p_rounding, &t.accumulation, &t.normalisation, &t.merge, &t.flush}) {
      *term *= size;
    }
    const double error = t.weights + t.p_rounding + t.accumulation + t.normalisation + t.merge;
    // One rounding of a product with the scale; a division may be an inverse and one more product.
    t.normalisation += (stored == 1.0 ? 1 : 3) * kU * kSlack * (std::fabs(o.mid) + o.rad + error);
    t.flush += kFloor;
  }
  add_output_rounding(problem.output(), std::fabs(o.mid) + o.rad, t, first_rounding);
}

} // namespace assay::oracle
