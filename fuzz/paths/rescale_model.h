// SPDX-License-Identifier: Apache-2.0
// What a chain of state operations means in exact arithmetic, and how far fp32 may be from it.
#pragma once

#include <array>
#include <cmath>
#include <string>
#include <vector>

namespace assay::fuzz {

inline constexpr int kLanes = 2; ///< components of o per state
using Lanes = std::array<float, kLanes>;

/// One key that a state holds. `steps` counts the rescalings and additions its contribution went
/// through: each multiplies it by at most (1 + 6 u) and one exponential.
struct Key {
  float score;
  Lanes v;
  int steps;
};

/// The multiset of keys behind a state.
struct Model {
  std::vector<Key> keys;
  float m = -INFINITY;       ///< maximum of scores and rescale targets; NaN loses
  int operations = 0;        ///< each may flush an intermediate to zero
  bool in_range = true;      ///< all scores and targets inside the documented range
  bool nan_absorbed = false; ///< a NaN or +inf score went in: the mass is NaN
  bool nan_loaded =
      false; ///< so was the LSE loaded: the maximum tells, from the next step the mass

  bool empty() const { return m == -INFINITY && !nan_absorbed; }
  /// The maximum is a key's own score, so the denominator is at least 1.
  bool has_mass() const;
  void absorb(float score, const Lanes &v, float scale);
  void rescale(float target, float scale);
  void merge(const Model &other);
  static Model from_normalized(float lse, const Lanes &o, float scale);
};

/// Scales for which anything is promised, and scores with such a scale.
bool scale_in_range(float scale);
bool score_in_range(float score, float scale);

/// A float state with what it gives: lse2() and normalize().
struct Observed {
  float m, d;
  Lanes o;
  float lse;
  Lanes normalized;
};

/// Empty when every output lies in the interval that correct fp32 arithmetic can reach. Claims
/// nothing for a model out of range, for an empty one, and for a lane with values out of range.
std::string bound_violation(const Model &model, const Observed &seen, float scale);

} // namespace assay::fuzz
