// SPDX-License-Identifier: Apache-2.0
#include "fuzz/paths/merge_judge.h"

#include <bit>
#include <cmath>

#include "fuzz/paths/enclosure.h"
#include "fuzz/paths/feedback.h"
#include "fuzz/paths/rescale_model.h"
#include "kernels/arch/convert.cuh"

namespace assay::fuzz {
namespace {

namespace arch = n_simt::arch;

constexpr float kLog2E = 1.44269504f, kLn2 = 0.693147181f;
constexpr int kSteps =
    7; // a state is rescaled at most so often: its own sum, then halves of workers

bool same(float a, float b) {
  return std::bit_cast<uint32_t>(a) == std::bit_cast<uint32_t>(b) || (a != a && b != b);
}

class MergeJudge {
public:
  MergeJudge(const MergeProgram &program, const MergeResult &seen)
      : program_(program), seen_(seen), form_(program.form) {}

  std::string run() {
    gather();
    note(Signal::kRemainder, program_.count);
    note(Signal::kMasked, program_.count - live_);
    note(Signal::kMaximum, exponent_level(m_));
    if (form_ == MergeForm::kBlock && !(seen_.m == m_)) return "m is not the maximum";
    if (infinite_) return "";
    if (nan_) return check_nan();
    if (live_ == 0) return check_empty();
    if (live_ == 1 && returns_lone_state()) return check_lone();
    return in_range_ ? check_within() : "";
  }

private:
  struct State {
    double lse, mass;
    double o[kMergeDims];
    double lse_error;
  };

  bool stores_bf16() const { return form_ == MergeForm::kPairBf16 || form_ == MergeForm::kCascade; }
  bool returns_lone_state() const { return form_ <= MergeForm::kMany && form_ != MergeForm::kSink; }
  /// Where the weight is 0, o does not count; in the others that is said of empty states alone.
  /// (The workers that share many states weigh by a maximum of their own first.)
  bool skips_weightless() const {
    return form_ == MergeForm::kFew || (form_ == MergeForm::kMany && program_.count <= 16) ||
           form_ >= MergeForm::kSplits;
  }
  bool has_units() const { return form_ <= MergeForm::kMany && form_ != MergeForm::kSink; }
  double scale() const {
    if (form_ == MergeForm::kBlock) return program_.scale;
    return program_.natural && has_units() ? kLog2E : 1.0f;
  }

  void gather() {
    in_range_ = scale_in_range(static_cast<float>(scale()));
    for (int i = 0; i < program_.count; ++i) {
      const MergeState &from = program_.states[static_cast<size_t>(i)];
      if (form_ == MergeForm::kCascade && !program_.is_covered(i)) continue;
      const bool sink = form_ == MergeForm::kSink && i == 1;
      State to{sink ? double{from.lse} * kLog2E : from.lse, from.mass, {}, 0};
      if (sink) to.lse_error = kUnit * std::fabs(to.lse);
      const bool nan = std::isnan(from.lse) || std::isnan(from.mass);
      if (from.lse == -INFINITY && !nan) continue;
      nan_ = nan_ || nan;
      infinite_ = infinite_ || from.lse == INFINITY || from.mass == INFINITY;
      in_range_ = in_range_ && score_in_range(from.lse, 2 * static_cast<float>(scale()));
      m_ = std::fmax(m_, to.lse);
      for (int c = 0; c < kMergeDims; ++c) {
        const float o = sink ? 0.0f : from.o[static_cast<size_t>(c)];
        to.o[c] = form_ == MergeForm::kPairBf16
                      ? arch::to_float(arch::from_float<arch::bf16>(o))
                      : o * (form_ == MergeForm::kBlock && program_.natural ? 1.5 : 1.0);
      }
      states_[live_++] = to;
    }
  }

  std::string check_nan() const {
    if (live_ == 1 && returns_lone_state()) return check_lone();
    if (live_ == 1 && form_ == MergeForm::kSink) return ""; // one side is empty, or is the sink
    if (seen_.lse == seen_.lse) return "a NaN is not in the lse";
    for (const float o : seen_.o)
      if (o == o) return "a NaN LSE is not in every component";
    return "";
  }

  std::string check_empty() const {
    if (seen_.lse != -INFINITY) return "lse of empty states is not -inf";
    for (const float o : seen_.o)
      if (std::bit_cast<uint32_t>(o) != 0) return "empty states do not give 0";
    return "";
  }

  std::string check_lone() const {
    if (!same(seen_.lse, static_cast<float>(states_[0].lse)))
      return "the lse of a lone state is not its own";
    for (int c = 0; c < kMergeDims; ++c)
      if (!same(seen_.o[static_cast<size_t>(c)], static_cast<float>(states_[0].o[c])))
        return "a lone state is not returned bit for bit";
    return "";
  }

  std::string check_within() {
    Weight weights[kMaxStates];
    double high = 0;
    for (int i = 0; i < live_; ++i) {
      const State &s = states_[i];
      const double x = scale() * s.lse - scale() * m_;
      exponents_[i] = x;
      if (x < 0) note(Signal::kGrowth, std::log2(-x) + 40);
      note(Signal::kWeight, -x / 4);
      const double error = kSlack * 2 * kUnit * -x + 2 * states_lse_error() + 0x1p-100;
      weights[i] = Weight::of(x, error, kSlack * (4 + 6 * kSteps) * kUnit);
      mass_.value += weights[i].exact * s.mass;
      mass_.error += weights[i].error() * s.mass;
      high += weights[i].high * s.mass;
    }
    if (!(high <= kMaxMagnitude)) return "";
    mass_.error = kSlack * (mass_.error + roundings() * high) + kFloor * (live_ + 1);
    note(Signal::kMass, exponent_level(mass_.value));
    if (form_ == MergeForm::kBlock)
      note(Signal::kErrorMass, error_level(std::fabs(seen_.d - mass_.value), mass_.error));
    if (form_ == MergeForm::kBlock && mass_.excludes(seen_.d)) return mass_.outside("d", seen_.d);
    if (mass_.value - mass_.error > 0x1p-100) {
      const Enclosure lse = lse_enclosure();
      note(Signal::kErrorLse, error_level(std::fabs(seen_.lse - lse.value), lse.error));
      if (lse.excludes(seen_.lse)) return lse.outside("lse", seen_.lse);
    }
    for (int c = 0; c < kMergeDims; ++c) {
      const std::string found = check_component(c, weights, high);
      if (!found.empty()) return found;
    }
    return "";
  }

  double roundings() const { return (live_ + kSteps + 2) * kUnit; }
  double states_lse_error() const {
    double most = 0;
    for (int i = 0; i < live_; ++i)
      most = std::fmax(most, states_[i].lse_error);
    return most;
  }

  Enclosure lse_enclosure() const {
    const double unit = program_.natural && has_units() ? kLn2 : 1.0;
    const double shift = form_ == MergeForm::kBlock ? scale() * m_ : m_;
    const double log_d = std::log2(mass_.value);
    const double relative = mass_.error / (mass_.value - mass_.error);
    const double error = unit * (1.4427 * relative + 0x1p-22 * (1 + std::fabs(log_d) + relative)) +
                         kUnit * (2 * std::fabs(shift) + 4 * std::fabs(log_d) + 4 * relative);
    return {shift + unit * log_d, kSlack * error + states_lse_error() + kFloor};
  }

  std::string check_component(int c, const Weight *weights, double high) const {
    Enclosure sum;
    double magnitude = 0, values = 0, nan_weight = 0, largest = 0, dominant = 0;
    bool finite = true;
    for (int i = 0; i < live_; ++i) {
      const double o = states_[i].o[c], size = std::fabs(o);
      if (o != o) nan_weight = std::fmax(nan_weight, weights[i].low * states_[i].mass);
      const bool weightless = weights[i].exact < 0x1p-127 && weights[i].high < 0x1p-124;
      if (!(size < INFINITY)) {
        finite = finite && weightless && skips_weightless();
        continue;
      }
      if (weights[i].exact * size > largest) {
        largest = weights[i].exact * size;
        dominant = exponents_[i];
      }
      sum.value += weights[i].exact * o;
      sum.error += weights[i].error() * size;
      magnitude += weights[i].high * size;
      values += size;
    }
    const float seen = seen_.o[static_cast<size_t>(c)];
    if (nan_weight >= 0x1p-20 * high && nan_weight > 0)
      return seen == seen ? "a NaN value is not in its component" : "";
    if (!finite || !(values <= kMaxMagnitude)) return "";
    sum.error =
        kSlack * (sum.error + roundings() * magnitude) + kFloor * (live_ + 4) * (values + 4);
    if (form_ == MergeForm::kBlock && sum.excludes(seen_.sum[static_cast<size_t>(c)]))
      return sum.outside("sum", seen_.sum[static_cast<size_t>(c)]);
    if (largest > 0) {
      note(Signal::kDominant, -dominant / 4);
      note(Signal::kCancelled, std::log2(magnitude / (std::fabs(sum.value) + 1e-300)));
    }
    const double least = mass_.value - mass_.error;
    if (!(least > 0x1p-100)) return "";
    return check_quotient(sum, least, seen);
  }

  std::string check_quotient(const Enclosure &sum, double least, float seen) const {
    Enclosure o{sum.value / mass_.value, 0};
    const double size = std::fabs(o.value);
    o.error = kSlack * ((sum.error + size * mass_.error) / least + 5 * kUnit * size) +
              kFloor * (1 + size);
    if (size + o.error > kMaxMagnitude) return "";
    if (stores_bf16()) o.error += 0x1p-8 * (size + o.error) + 0x1p-133;
    note(Signal::kErrorSum, error_level(std::fabs(seen - o.value), o.error));
    if (std::fpclassify(seen) == FP_SUBNORMAL) note(Signal::kSubnormal, 1);
    return o.excludes(seen) ? o.outside("o", seen) : "";
  }

  const MergeProgram &program_;
  const MergeResult &seen_;
  const MergeForm form_;
  State states_[kMaxStates];
  int live_ = 0;
  double m_ = -INFINITY;
  double exponents_[kMaxStates]; // exponents of the weights
  bool nan_ = false, infinite_ = false, in_range_ = true;
  Enclosure mass_;
};

} // namespace

std::string merge_violation(const MergeProgram &program, const MergeResult &result) {
  if (!result.violation.empty()) return result.violation;
  begin_feedback(static_cast<int>(program.form));
  return MergeJudge(program, result).run();
}

std::string check_merge(Input input) {
  static MergeProgram program;
  static MergeResult result;
  read_merge_program(input, program);
  run_merge_program(program, result);
  return merge_violation(program, result);
}

} // namespace assay::fuzz
