// SPDX-License-Identifier: Apache-2.0
// Draws aimed at what uniform ones hardly ever reach.
#pragma once

#include "properties/case/codec.h"

namespace assay {

/// `p`, or for one draw in seven (merge_states: three) a case made of it in which sizes fit
/// together: a cascade with a long prefix of many rows or with more segments than a warp, a merge
/// of many states or of wide ones, and what directed_paged.h has; one paged draw in 25 of the
/// others shares prefixes, and of their shards one in four ends with a tile that not every query
/// token sees. Batch, heads, keys, splits and states may then exceed `limits`, keys up
/// to twice its slots. Depends on its arguments alone.
Problem directed(Problem p, const Limits &limits, uint64_t seed);

/// `p` with more requests than a run draws otherwise, since blocks are not free: a paged batch
/// beyond 2^16, nearly all of it empty (blocks are counted in 32 bits, by some in 16), or more
/// segments than a warp finds in two rounds. A merge gets more heads than a block has threads.
Problem with_most_requests(Problem p);

/// Attention over pages of 528 tokens, of which a request has a part, or two and a part.
Problem with_large_pages(Problem p);

/// Paged attention of one request with 58,000 keys of 256: half a second and more a run.
Problem with_longest_row(Problem p);
/// A paged case with more query heads than 16 bits count.
Problem with_most_heads(Problem p);

/// Such a case always.
Problem aimed(Problem p, const Limits &limits, uint64_t seed);

} // namespace assay
