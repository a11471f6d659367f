// SPDX-License-Identifier: Apache-2.0
// Containment, not tolerance: is an output where a correct kernel's must be?
#pragma once

#include <cmath>
#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "oracle/bounds/attention_row.h"
#include "oracle/bounds/merge.h"
#include "oracle/exact/interval.h"
#include "oracle/judge/budget_sizes.h"
#include "oracle/judge/found_order.h"
#include "oracle/judge/reason.h"

namespace assay::oracle {

/** Undecided: the reference is not known sharply enough; escalated, and never a pass. */
enum class Verdict { kInside, kOutside, kUndecided };

struct ElementReport {
  static constexpr int kLse = -1;
  static constexpr int kRow = -2; ///< all elements of a row, along the direction of its error

  int request = 0; ///< query row: request after request, token after token
  int head = 0;
  int dim = 0;  ///< or kLse, kRow
  int tier = 0; ///< whose interval this is: 0 T0, 1 T1, 2 T2
  float got = 0.0f;
  Enclosure reference;
  BudgetTerms budget; ///< for the LSE only `total`; of a row output_rounding is all that differs
                      ///< from element to element
  double ratio = 0.0; ///< |got - mid| / bound
  Verdict verdict = Verdict::kInside;
  Reason reason = Reason::kNone;
};

struct Report {
  Verdict verdict = Verdict::kInside; ///< the worst of all elements
  uint64_t elements = 0;              ///< outputs and LSEs looked at
  uint64_t claimed = 0;               ///< those about which the oracle makes a claim
  uint64_t no_claim = 0;
  uint64_t escalated = 0;      ///< decided in interval arithmetic
  uint64_t certified_rows = 0; ///< references recomputed in interval arithmetic
  double worst_ratio_t0 = 0.0;
  double worst_ratio_t1 = NAN; ///< NaN: the tier did not apply
  double worst_ratio_t2 = NAN;
  double worst_ratio_lse = NAN; ///< NaN: no LSE was written
  double worst_ratio_row = NAN; ///< of a whole row; NaN: none was judged as one
  ElementReport worst;
  uint64_t declared_away = 0; ///< those of no_claim that would have a claim without declared errors
  BudgetSizes budgets;        ///< the tightest of each output's tiers
  std::vector<ElementReport> findings; ///< the first 16
  uint64_t finding_count = 0;
  FoundOrder order; ///< of the call; merge() leaves it

  void merge(const Report &other);
  void add(const ElementReport &element);
  void add_row_ratio(double ratio, bool escalated); ///< of a row judged as one
  /// What `again` says of whole rows, where their elements are counted already.
  void add_whole_rows(const Report &again);
};

/** Decides one value; `certified(precision)` supplies the reference when the radius is in the way.
 */
struct Decision {
  Verdict verdict;
  bool escalated;
};
Decision decide(float got, const Enclosure &reference, double bound,
                const std::function<Interval(int precision)> &certified, int max_precision = 2048);

/** One row of outputs (already decoded). `lse` null: not written. */
Report judge_row(const RowProblem &problem, const RowReference &row, const float *o,
                 const float *lse, int request, int head);

/** One merged row; the bits matter when a single state is live. */
Report judge_row(const MergeProblem &problem, const MergeReference &reference, const float *o,
                 const float *lse, int row, int head);

} // namespace assay::oracle
