// SPDX-License-Identifier: Apache-2.0
// How attention outputs are usually accepted, for comparison: constants and ratios to a
// low-precision run, on the outputs alone.
#pragma once

#include <algorithm>
#include <cmath>
#include <span>
#include <vector>

#include "oracle/exact/dtype.h"
#include "oracle/exact/row_input.h"

namespace assay::oracle {

/** Every element within atol + rtol * |reference|, both `tolerance`. */
inline bool all_close(std::span<const float> got, std::span<const double> reference,
                      double tolerance) {
  for (size_t i = 0; i < got.size(); ++i) {
    if (!(std::fabs(got[i] - reference[i]) <= tolerance * (1.0 + std::fabs(reference[i])))) {
      return false;
    }
  }
  return true;
}

/** 98 % of the elements within 1e-2, absolute or relative. */
inline bool mostly_close(std::span<const float> got, std::span<const double> reference) {
  size_t close = 0;
  for (size_t i = 0; i < got.size(); ++i) {
    const double error = std::fabs(got[i] - reference[i]);
    close += error <= 1e-2 || error <= 1e-2 * std::fabs(reference[i]);
  }
  return static_cast<double>(close) >= 0.98 * static_cast<double>(got.size());
}

/** Straightforward attention in the element type: scores and weights rounded to it. */
inline std::vector<double> plain_attention(std::span<const float> q, const KeySet &keys,
                                           float sm_scale, assay_dtype dtype) {
  const Format &format = format_of(dtype);
  std::vector<double> weights;
  double top = -INFINITY, sum = 0.0;
  for (size_t j = 0; j < keys.size(); ++j) {
    float score = 0.0f;
    for (size_t i = 0; i < q.size(); ++i)
      score += q[i] * keys.key(j)[i];
    weights.push_back(round_to(format, round_to(format, score) * sm_scale));
    top = std::max(top, weights.back());
  }
  for (double &w : weights)
    sum += w = std::exp(w - top);
  std::vector<double> out(q.size(), 0.0);
  for (size_t j = 0; j < keys.size(); ++j) {
    const double p = round_to(format, weights[j] / sum);
    for (size_t i = 0; i < out.size(); ++i)
      out[i] += p * keys.value(j)[i];
  }
  for (double &x : out)
    x = round_to(format, x);
  return out;
}

/** Largest error at most twice that of the plain low-precision run (plus rounding of the result).
 */
inline bool within_twice_plain(std::span<const float> got, std::span<const double> reference,
                               std::span<const double> plain, assay_dtype dtype) {
  const Format &format = format_of(dtype);
  double error = 0.0, usual = 0.0, rounding = 0.0;
  for (size_t i = 0; i < got.size(); ++i) {
    if (std::isnan(got[i])) return false;
    const double r = round_to(format, reference[i]);
    const double shaken = round_to(format, round_to(format, r + 0.3) - 0.3);
    error = std::max(error, std::fabs(got[i] - reference[i]));
    usual = std::max(usual, std::fabs(plain[i] - reference[i]));
    rounding = std::max(rounding, std::fabs(shaken - r));
  }
  return error <= 2 * usual + 2 * rounding;
}

} // namespace assay::oracle
