// SPDX-License-Identifier: Apache-2.0
// Computes the references in interval arithmetic at any precision: this certifies the fast path and
// decides what it leaves undecided.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "oracle/bounds/attention_row.h"
#include "oracle/bounds/merge.h"
#include "oracle/exact/interval.h"

namespace assay::oracle {

/** Exact softmax weights of a row as intervals; the costly part, shared by all its dimensions. */
class CertifiedRow {
public:
  /// `scores`: exact scores to use instead of q.k (T2).
  CertifiedRow(const RowProblem &problem, int precision,
               const std::vector<double> *scores = nullptr);

  Interval output(int dim) const;
  Interval lse() const; ///< in the declared base

  /** The replayed value o', from the constants the fast path fixed. */
  Interval replayed_output(const std::vector<double> &p, const std::vector<double> &shift,
                           double x_max, int dim) const;

private:
  const RowProblem &problem_;
  int precision_;
  double top_;
  std::vector<Interval> weight_; // 2^(x - top)
  Interval sum_;
};

/** o' of tier 1 or 2 for one dimension of a row with a tile order; dim -1: the LSE of tier 2. */
Interval certified_replay(const RowProblem &problem, int tier, int dim, int precision);

/** The same for a merge of states (dim -1: its LSE). */
Interval certified_merge(const MergeProblem &problem, int dim, int precision);

/** A row's fast enclosures recomputed in interval arithmetic: how many, and which do not hold. */
struct Certification {
  uint64_t values = 0, misses = 0;
  std::string first_miss; ///< element and tier, for the reader

  void check(const Enclosure &fast, const Interval &certified, int tier, int dim);
};

/** The LSE and the outputs `dims` of every tier that the row has. Rows without a claim: nothing. */
Certification certify_row(const RowProblem &problem, const RowReference &row,
                          std::span<const int> dims, int precision = 256);
Certification certify_row(const MergeProblem &problem, const MergeReference &reference,
                          std::span<const int> dims, int precision = 256);

/** True when the value that the interval holds lies inside the enclosure, as far as the interval
   can tell (2^-60 of the radius): the fast path's radius was honest. */
bool encloses(const Enclosure &outer, const Interval &inner);

} // namespace assay::oracle
