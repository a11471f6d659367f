// SPDX-License-Identifier: Apache-2.0
// Why one element is where it is: its intervals, its budgets term by term, and the keys that
// matter.
#pragma once

#include <string>
#include <vector>

#include "oracle/bounds/attention_row.h"

namespace assay::oracle {

struct KeyInfluence {
  int key = 0;            ///< index into the row's KeySet
  double weight = 0.0;    ///< exact softmax weight
  double logit = 0.0;     ///< base 2
  float value = 0.0f;     ///< v of the explained dimension
  double t0 = 0.0;        ///< what this key adds to the T0 budget
  double t1 = 0.0;        ///< and to T1
  bool ambiguous = false; ///< T1 cannot tell how its P was rounded
};

struct Explanation {
  int dim = 0; ///< -1: the LSE
  bool empty = false, claim = true;
  std::string no_claim_reason;
  Enclosure exact;
  BudgetTerms t0;
  bool has_t1 = false, has_t2 = false;
  Enclosure replayed, bit_replayed;
  BudgetTerms t1, t2;
  double ambiguous_fraction = 0.0;
  std::vector<KeyInfluence> by_weight; ///< the largest weights, at most 5
  std::vector<KeyInfluence>
      by_budget; ///< the largest parts of the sharpest of T0 and T1, at most 5
};

/** One element of a row; dim -1 explains the LSE. */
Explanation explain_element(const RowProblem &problem, int dim);

/** Several lines of text, without a trailing newline. */
std::string format_explanation(const Explanation &explanation);

} // namespace assay::oracle
