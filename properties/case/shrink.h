// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <atomic>
#include <functional>

#include "properties/case/simplify.h"

namespace assay {

/// Processor time of this thread since some moment, in seconds.
double processor_seconds();

struct ShrinkBudget {
  int checks = 2000;
  double seconds = 30; ///< by `clock`; ten times as many may go by
  /// What has been spent, in seconds, since some moment; null: processor time of this thread, so
  /// that a busy machine does not cut the search short.
  std::function<double()> clock = nullptr;
  const std::atomic<bool> *stop = nullptr; ///< spent when it turns true
};

struct ShrinkStats {
  int checks = 0; ///< candidates tried
  int accepted = 0;
  bool exhausted = false; ///< the budget ended the search; a smaller case may exist
  unsigned tried = 0;     ///< bits by ShrinkField: all candidates of a case on the way were tried

  /// Whether what the case is in this field is known to be needed.
  bool knows(ShrinkField field) const {
    return !exhausted || (tried >> static_cast<unsigned>(field) & 1) != 0;
  }
};

/// Greedy, field by field: batch, heads, group, lengths, pages, head_dim, regimes, values, strides,
/// schedule; then a few jumps of several fields at once; repeated until nothing gets simpler.
/// `fails` says whether a candidate still fails; it is only called with well-formed cases.
/// Deterministic apart from the time limit.
Problem shrink(const Problem &p, const std::function<bool(const Problem &)> &fails,
               const ShrinkBudget &budget = {}, ShrinkStats *stats = nullptr);

/// Candidates one step simpler than `p`, the boldest first, by field.
std::vector<std::vector<Problem>> shrink_candidates(const Problem &p);

/// A case's size for comparison: shrinking never increases it.
long complexity(const Problem &p);

} // namespace assay
