// SPDX-License-Identifier: Apache-2.0
// Sizes that serving has and draws of small cases do not: each in its cheapest form.
#pragma once

#include "properties/case/dice.h"
#include "properties/case/problem.h"

namespace assay {

/// Kinds of a family: batches beside powers of two from 16 to 256 (paged, cascade), long rows,
/// many splits or states, windows beside rows of half to four of them, large pages, prefixes that
/// part where a page or half of a block ends.
int serving_kinds(Family family);
/// The first kinds of attention are batches, of rows of several tiles and 16 query heads; of paged
/// attention long rows follow.
inline constexpr int kServingBatches = 5, kServingRows = 4;

/// A case of kind `kind` made of `p`, below full_limits().
Problem serving_case(Problem p, int kind, Dice &dice);

} // namespace assay
