// SPDX-License-Identifier: Apache-2.0
// The query rows of a case: which token of which request each is, and which keys it sees. Whoever
// needs a row of a request asks here, and computes with no number of tokens itself.
#pragma once

#include "properties/case/problem.h"

namespace assay {

/// A query token. Of a cascade and a merge, which have one a request, the request.
struct QueryRow {
  int request = 0, token = 0;
};

/// Query tokens of a request: its newest. There may be none.
int query_tokens(const Problem &p, int request);
/// Rows of all requests: request after request, token after token.
int query_rows(const Problem &p);
int row_of(const Problem &p, QueryRow at);
QueryRow query_row(const Problem &p, int row);

/// The number of the first token of a ragged call, qo_indptr[0]: a call may be a part of a larger
/// one. It follows base_seed, and changes nothing but addresses.
int first_query_token(const Problem &p);

/// Rows that lie one token stride apart: those of a request.
int rows_between_batch_strides(const Problem &p);

/// Tokens of a request on all ranks; of a case that is no shard, its keys.
int global_tokens(const Problem &p, int request);
/// Keys each request attends to: seq_lens, or the sum over a cascade's levels.
std::vector<int> keys_per_request(const Problem &p);
/// Keys of the cache that stand at positions below `tokens`.
int keys_before(const Problem &p, int tokens);

/// The keys become all tokens of their requests.
void forget_shard(Problem &p);

/// One query token in each request, which is its newest.
Problem with_one_token(Problem p);

/// Once batch or q_len have changed: makes lists of requests as long as the batch, and valid.
void fit_requests(Problem &p);
/// Takes requests [begin, end) out of the batch and of these lists.
void erase_requests(Problem &p, int begin, int end);

/// Keys [begin, end) of its request in the cache that a query row of a paged case sees. Where the
/// case is no shard, these are positions.
struct PositionRange {
  int begin = 0, end = 0;
  int size() const { return end - begin; }
};
PositionRange visible_range(const Problem &p, int row);
/// The position of a key of the cache less that of a query row of a paged case.
int key_distance(const Problem &p, int row, int key);

} // namespace assay
