// SPDX-License-Identifier: Apache-2.0
// Paged cases in which sizes fit together.
#pragma once

#include "properties/case/problem.h"
#include "properties/case/rng.h"

namespace assay {

/// Makes `p` a case of one of these kinds: lengths at multiples of pages and tiles with windows
/// that begin there; requests of which workers hold the end of one and the begin of the next; more
/// requests than a planner's round; more splits than a warp has lanes; fewer head tiles
/// than multiprocessors; more heads than 64; logits
/// far from zero, far apart or hardly rising. What exceeds `limits`: directed.h.
void aim_paged(Problem &p, const Limits &limits, Rng &rng);

/// Requests that begin with the same pages, in trees and chains.
void aim_at_shared_prefixes(Problem &p, const Limits &limits, Rng &rng);

/// For other lengths: a list of pages would not fit.
void forget_pages(Problem &p);

} // namespace assay
