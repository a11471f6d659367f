// SPDX-License-Identifier: Apache-2.0
// Paged attention the plain way, with every feature: a planner cuts requests into chunks of keys, a
// thread a (chunk, query token, head) leaves a partial (O, LSE), a thread a row merges them.
#pragma once

#include <cstdint>

#include "corpus/bugs/bug.h"
#include "corpus/bugs/elements.h"
#include "kernels/arch/load_store.cuh"

namespace assay::bugs {

namespace arch = n_simt::arch;

inline constexpr int kTile = 16;  ///< keys between two updates of the running maximum
inline constexpr int kChunk = 64; ///< keys of a chunk where the call gives no number of splits
inline constexpr int kThreads = 32;
inline constexpr float kNegInf = -__builtin_inff();

/// A length or an entry of a page table, from the call's memory or from the kernel's own copy of
/// it.
inline int32_t load_index(const int32_t *at) {
  return reads_own_copy() ? *at : arch::global_load(at);
}

/// Token positions [begin, end).
struct Range {
  int begin, end;
  int size() const { return end > begin ? end - begin : 0; }
};

/// Keys of one request that one thread a row attends to.
struct Item {
  int request;
  Range keys;
  int chunk; ///< number in its request
};

/// A call and its scratch: [items, where the places begin, -, -], items of four numbers each, the
/// first place of each request and the end of the last, partials by place, query token and head.
struct PagedCall {
  const assay_paged_params *p;
  const int32_t *planned; ///< lengths that the plan is for where those are not the call's
  int most_merged;        ///< chunks of a row that are merged at most
  int64_t most_items;     ///< at the lengths that the page table has room for
  int32_t *header, *items;
  float *partial_o, *partial_lse;
  uint64_t bytes; ///< size of all together

  int64_t rows_of_item() const { return int64_t{p->q_len} * p->num_qo_heads; }
  int64_t slot(int64_t place, int token, int head) const {
    return (place * p->q_len + token) * p->num_qo_heads + head;
  }
};

PagedCall paged_call(const assay_paged_params &p);

/// Query tokens of a request, and the number of the first in the call where they are ragged.
struct Tokens {
  int64_t first;
  int count;
};
Tokens tokens_of(const assay_paged_params &p, int request);
/// The longest length of the batch.
int longest_of(const assay_paged_params &p);
/// Keys of a request that the cache holds.
int length_of(const assay_paged_params &p, int request);
/// How many of a request's first `tokens` this rank holds, and the position of its key-th.
int held_of(const assay_paged_params &p, int tokens);
int position_of_held(const assay_paged_params &p, int key);

/// Keys that some token of a request of this length sees.
Range span_of(const assay_paged_params &p, int len);
/// What a query token at `position` of it sees.
Range visible_to(const assay_paged_params &p, int len, int position);
/// Whether the one split with keys stores the row itself: where there is no second tile.
inline bool is_stored_unmerged(const assay_paged_params &p, int len) {
  return p.num_splits > 1 && span_of(p, len).size() <= kTile;
}
/// Chunks of a span, at least one.
int chunks_of(const assay_paged_params &p, Range span);
/// Keys that a query token sees at most, its own included; 0: all.
inline int window_keys(const assay_paged_params &p) { return p.window_left + 1; }

/// The call as the kernel is told of it, with something of the first one like it.
assay_paged_params as_told(assay_paged_params p);
/// A plan or a graph of the first call like it.
void keep_plan(PagedCall &call);
/// In one thread: items and places.
void plan(const PagedCall &call);
/// The thread's chunk, token and head.
void attend(const PagedCall &call, int64_t thread);
/// The thread's row. There is a thread for each.
int64_t threads_that_combine(const PagedCall &call);
void combine(const PagedCall &call, int64_t thread);

assay_status paged_supports(const void *params);
assay_status paged_workspace(const void *params, uint64_t *bytes);
assay_status run_paged(const void *params);

} // namespace assay::bugs
