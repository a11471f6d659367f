// SPDX-License-Identifier: Apache-2.0
// Sizes that serving has and draws of small cases do not: each in its cheapest form.
#pragma once

#include <vector>

#include "properties/case/problem.h"
#include "properties/case/rng.h"

namespace assay {

/// What a kind of case is for. Bits.
enum ServingUse : unsigned {
  kServingValues = 1,  ///< within_budget
  kServingBits = 2,    ///< batch_independence: many elements, split as the kernel wants
  kServingCounts = 4,  ///< zero_query_counts_keys: long rows
  kServingRepeats = 8, ///< run_to_run: many partial results of many elements
  kServingAll = 15
};

/// The kinds of a family for a use, by number. Batches beside powers of two from 16 to 256, long
/// rows alone, beside others and with features, many splits or states, windows beside rows of half
/// to four of them, large pages, heads of models, prefixes that part where a page or half of a
/// block ends.
std::vector<int> serving_kinds(Family family, unsigned use);

/// A case of kind `kind` made of `p`, below full_limits().
Problem serving_case(Problem p, int kind, Rng &rng);

} // namespace assay
