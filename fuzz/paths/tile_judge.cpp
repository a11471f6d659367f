// SPDX-License-Identifier: Apache-2.0
#include "fuzz/paths/tile_judge.h"

#include <bit>
#include <cmath>

#include "fuzz/paths/feedback.h"
#include "fuzz/paths/rescale_model.h"
#include "fuzz/paths/tile_enclosure.h"

namespace assay::fuzz {
namespace {

bool same(float a, float b) { return a == b || (a != a && b != b); }

class RowJudge {
public:
  RowJudge(const TileProgram &program, const TileResult &result, int row)
      : program_(program), form_(program.shape()), result_(result), row_(row),
        seen_(result.rows[row]) {}

  std::string run() {
    read_scores();
    check_maxima();
    check_holders();
    note_steps();
    if (!error_.empty() || !scale_in_range(program_.scale)) return error_;
    if (nan_ || infinite_)
      check_nan();
    else if (m_end() == -INFINITY)
      check_empty();
    else if (in_range_)
      check_within();
    return error_;
  }

private:
  float m_end() const { return m_[program_.count - 1]; }

  void read_scores() {
    float m = -INFINITY;
    for (int i = 0; i < program_.count; ++i) {
      const TileStep &step = program_.steps[static_cast<size_t>(i)];
      step_masked_[i] = true;
      for (int token = 0; token < step.live; ++token) {
        const float score = step.scores[row_][token];
        m = std::fmax(m, score);
        if (score != -INFINITY) step_masked_[i] = false;
        nan_ = nan_ || score != score;
        infinite_ = infinite_ || score == INFINITY;
        in_range_ = in_range_ && score_in_range(score, program_.scale);
      }
      m_[i] = m;
    }
  }

  void note_steps() const {
    int masked = 0;
    float before = -INFINITY;
    for (int i = 0; i < program_.count; ++i) {
      const double growth = (static_cast<double>(m_[i]) - before) * program_.scale;
      if (m_[i] > before && before > -INFINITY) note(Signal::kGrowth, std::log2(growth) + 40);
      if (step_masked_[i]) masked |= 1 << i;
      note(Signal::kRemainder, program_.steps[static_cast<size_t>(i)].live);
      before = m_[i];
    }
    note(Signal::kMasked, masked);
    note(Signal::kMaximum, exponent_level(m_end()));
    note(Signal::kMass, exponent_level(seen_.d[0]));
  }

  void check_maxima() {
    for (int i = 0; i < program_.count; ++i)
      for (const float m : seen_.m_after[i])
        if (!(m == m_[i])) return require("m is not the maximum");
  }

  void check_holders() {
    for (int lane = 1; lane < kHolders; ++lane)
      if (!same(seen_.d[lane], seen_.d[0]) || !same(seen_.lse2[lane], seen_.lse2[0]))
        return require("the lanes of a row hold different sums");
  }

  /// Checks that NaN and +inf scores show; only the mass must show +inf.
  void check_nan() {
    if (seen_.d[0] == seen_.d[0]) return require("a NaN or +inf score is not in the mass");
    if (!nan_) return;
    if (seen_.lse2[0] == seen_.lse2[0]) return require("a NaN score is not in the lse");
    for (int c = 0; c < kTileDims; ++c)
      if (seen_.o[c] == seen_.o[c] || seen_.normalized[c] == seen_.normalized[c])
        return require("a NaN score is not in every component");
  }

  void check_empty() {
    if (!(seen_.d[0] == 0.0f)) return require("a row without keys has a mass");
    if (seen_.lse2[0] != -INFINITY) return require("lse of a row without keys is not -inf");
    for (const float x : seen_.normalized)
      if (std::bit_cast<uint32_t>(x) != 0) return require("a row without keys does not give 0");
  }

  void check_within() {
    const EnclosedRow right = enclose_tile_row(program_, row_, m_);
    if (!right.claimed) return;
    const double d = seen_.d[0];
    note(Signal::kWeight, -right.smallest / 4);
    note(Signal::kErrorMass, error_level(std::fabs(d - right.d.value), right.d.error));
    if (right.d.excludes(d)) return require(right.d.outside("d", d));
    const double log_d = std::log2(d), shift = static_cast<double>(program_.scale) * m_end();
    const Enclosure lse{shift + log_d, 0x1p-22 * (1 + std::fabs(log_d)) +
                                           2.01 * kUnit * (std::fabs(shift) + std::fabs(log_d)) +
                                           0x1p-125};
    if (lse.excludes(seen_.lse2[0])) return require(lse.outside("lse", seen_.lse2[0]));
    note(Signal::kErrorLse, error_level(std::fabs(seen_.lse2[0] - lse.value), lse.error));
    if (form_.two_parts && row_ >= 4) return; // belongs to the row four in front
    for (int c = 0; c < kTileDims; ++c)
      check_component(right.components[static_cast<size_t>(c)], c, d);
  }

  void check_component(const EnclosedComponent &right, int c, double d) {
    const float o = seen_.o[c], normalized = seen_.normalized[c];
    if (right.must_nan && (o == o || normalized == normalized))
      return require("a NaN value is not in its component");
    if (!right.claimed) return;
    const double low = form_.two_parts ? result_.rows[row_ + 4].o[c] : 0.0;
    if (right.o.excludes(o + low)) return require(right.o.outside("o", o + low));
    note_component(right, o, low);
    const double quotient = o / d;
    const Enclosure share{quotient,
                          4.01 * kUnit * std::fabs(quotient) + 0x1p-125 * (1 + std::fabs(o))};
    if (share.excludes(normalized)) require(share.outside("normalized o", normalized));
  }

  static void note_component(const EnclosedComponent &right, float o, double low) {
    if (right.magnitude == 0) return;
    note(Signal::kErrorSum, error_level(std::fabs(o + low - right.o.value), right.o.error));
    note(Signal::kDominant, -right.dominant / 4);
    note(Signal::kCancelled, std::log2(right.magnitude / (std::fabs(right.o.value) + 1e-300)));
    if (std::fpclassify(o) == FP_SUBNORMAL) note(Signal::kSubnormal, 1);
  }

  void require(const std::string &violation) {
    if (error_.empty()) error_ = violation + " (row " + std::to_string(row_) + ")";
  }

  const TileProgram &program_;
  const TileForm &form_;
  const TileResult &result_;
  const int row_;
  const TileRow &seen_;
  float m_[kMaxSteps];
  bool step_masked_[kMaxSteps];
  bool nan_ = false, infinite_ = false, in_range_ = true;
  std::string error_;
};

} // namespace

std::string tile_violation(const TileProgram &program, const TileResult &result) {
  if (!result.violation.empty()) return result.violation;
  begin_feedback(0); // the forms have their code in common
  for (int row = 0; row < program.shape().rows; ++row) {
    const std::string found = RowJudge(program, result, row).run();
    if (!found.empty()) return found;
  }
  return "";
}

std::string check_tile(Input input) {
  static TileProgram program;
  static TileResult result;
  read_tile_program(input, program);
  run_tile_program(program, result);
  return tile_violation(program, result);
}

} // namespace assay::fuzz
