// SPDX-License-Identifier: Apache-2.0
#include "fuzz/paths/tile_enclosure.h"

#include <algorithm>
#include <cmath>

#include "kernels/arch/convert.cuh"
#include "kernels/arch/simt/block_fma.h"

namespace assay::fuzz {
namespace {

namespace arch = n_simt::arch;

constexpr double kMaxExponentError = 8; // limit for a weight; beyond it, fp32 may overflow
/// What one block-FMA commits, relative to the magnitudes that it adds (oracle/BOUNDS.md, 2).
constexpr double kKappa =
    (arch::BlockFmaSpec::kBlock + 1.0) / (1 << arch::BlockFmaSpec::kFractionBits) + 0x1p-23;

/// What the weights are rounded to on their way to the MMA.
struct WeightFormat {
  double relative, absolute, least_normal;
};

WeightFormat format_of(const TileForm &form) {
  if (form.fp16) return {0x1p-11, 0x1p-25, 0x1p-14};
  return {form.two_parts ? 0x1p-16 : 0x1p-8, 0x1p-133, 0x1p-126};
}

class RowEnclosure {
public:
  RowEnclosure(const TileProgram &program, int row, const float (&m)[kMaxSteps])
      : program_(program), form_(program.shape()), format_(format_of(form_)), row_(row), m_(m),
        scale_(program.scale) {}

  EnclosedRow run() {
    EnclosedRow out;
    for (int i = 0; i < program_.count && in_reach_; ++i)
      add_step(i);
    out.claimed = in_reach_;
    if (!in_reach_) return out;
    const double steps = program_.count, additions = steps * form_.tokens / 8 + 3;
    out.smallest = smallest_;
    out.d.value = mass_;
    out.d.error = kSlack * (mass_error_ + mass_high_ * additions * kUnit) + kFloor * keys_;
    for (int c = 0; c < kTileDims; ++c)
      out.components[static_cast<size_t>(c)] = component(c);
    return out;
  }

private:
  void add_step(int i) {
    const TileStep &step = program_.steps[static_cast<size_t>(i)];
    for (int token = 0; token < form_.tokens; ++token) {
      const float score = step.scores[row_][token];
      const bool masked = token >= step.live || score == -INFINITY;
      const Weight weight = masked ? Weight{} : weight_of(score, i);
      if (!masked)
        exponent_ = scale_ * static_cast<double>(score) - scale_ * m_[program_.count - 1];
      smallest_ = std::min(smallest_, exponent_);
      add_key(weight, step.values[token], masked);
    }
  }

  /// fma(score, scale, -fl(scale * m)), then a rescale for each later maximum, whose arguments
  /// telescope: 2 u for the difference and the product, 4 u for the exponential, u for the product
  /// with the state.
  Weight weight_of(float score, int i) {
    const double m_then = scale_ * static_cast<double>(m_[i]); // exact: 48 bits
    const double m_end = scale_ * static_cast<double>(m_[program_.count - 1]);
    const double s = scale_ * static_cast<double>(score);
    const double shift_error = kUnit * std::fabs(m_then);
    const double exponent_error =
        kSlack * (shift_error + kUnit * (m_then - s + shift_error) + 2 * kUnit * (m_end - m_then)) +
        0x1p-100;
    if (!(exponent_error <= kMaxExponentError)) in_reach_ = false;
    most_growth_ = std::max(most_growth_, std::exp2(exponent_error));
    return Weight::of(s - m_end, exponent_error, kSlack * (4 + 6.0 * program_.count) * kUnit);
  }

  void add_key(const Weight &w, const uint16_t (&values)[kTileDims], bool masked) {
    const double error = w.error();
    mass_ += w.exact;
    mass_high_ += w.high;
    mass_error_ += error;
    ++keys_;
    // An operand below the least normal number aligns as if it were that.
    const double aligned = std::max(w.high, format_.least_normal);
    const double rounding = w.high * format_.relative + format_.absolute;
    for (int c = 0; c < kTileDims; ++c) {
      const double v = value_of(values[c]), size = std::fabs(v);
      Column &column = columns_[c];
      if (!(size < INFINITY)) {
        column.finite = false;
        if (v != v && !masked) column.nan_weight = std::max(column.nan_weight, w.low);
        continue;
      }
      if (masked || size == 0) continue;
      const double part = w.exact * size;
      if (part > column.largest) {
        column.largest = part;
        column.dominant = exponent_;
      }
      column.sum += w.exact * v;
      column.error += (error + rounding) * size;
      column.magnitude += aligned * std::max(size, format_.least_normal);
      column.values += size;
    }
  }

  double value_of(uint16_t bits) const {
    return form_.fp16 ? arch::to_float(arch::fp16{bits}) : arch::to_float(arch::bf16{bits});
  }

  EnclosedComponent component(int c) const {
    const Column &column = columns_[c];
    const double blocks = program_.count * (form_.tokens / 16) * (form_.two_parts ? 2 : 1);
    const double gathered = 2 * blocks * kKappa + 2.0 * program_.count * kUnit;
    EnclosedComponent out;
    out.o.value = column.sum;
    out.o.error = kSlack * (column.error + gathered * column.magnitude) +
                  kFloor * (keys_ + 4) * (column.values + 4);
    out.claimed = column.finite && column.values * most_growth_ <= kMaxMagnitude; // at any time
    out.magnitude = column.magnitude;
    out.dominant = column.dominant;
    out.must_nan = column.nan_weight >= 0x1p-20 * mass_high_;
    return out;
  }

  struct Column {
    double sum = 0, error = 0, magnitude = 0;
    double values = 0; // sum of |v|
    double nan_weight = 0;
    double largest = 0, dominant = 0; // |w v| of one key, exponent of its weight
    bool finite = true;
  };

  const TileProgram &program_;
  const TileForm &form_;
  const WeightFormat format_;
  const int row_;
  const float (&m_)[kMaxSteps];
  const double scale_;
  bool in_reach_ = true;
  double mass_ = 0, mass_high_ = 0, mass_error_ = 0;
  double most_growth_ = 1;             // growth of a weight, by its exponent's error
  double exponent_ = 0, smallest_ = 0; // exponents of weights: this key's, and the least
  int keys_ = 0;
  Column columns_[kTileDims];
};

} // namespace

EnclosedRow enclose_tile_row(const TileProgram &program, int row, const float (&m)[kMaxSteps]) {
  return RowEnclosure(program, row, m).run();
}

} // namespace assay::fuzz
