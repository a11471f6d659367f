// SPDX-License-Identifier: Apache-2.0
#include <algorithm>

#include "corpus/bugs/bug.h"
#include "corpus/bugs/paged.h"

namespace assay::bugs {
namespace {

int planned_length(const PagedCall &call, int request) {
  if (call.planned != nullptr) return call.planned[request];
  if (is(Bug::split_range_of_first_request)) request = 0;
  return length_of(*call.p, request);
}

/// Tokens of the whole batch over four, in tiles.
int chunk_of_batch(const assay_paged_params &p) {
  int64_t total = 0;
  for (int b = 0; b < p.batch; ++b)
    total += load_index(p.kv.seq_lens + b);
  return static_cast<int>((total / 4 / kTile + 1) * kTile);
}

/// Keys of a chunk where the call gives no number of splits.
int chunk_size(const assay_paged_params &p) {
  if (is(Bug::splits_follow_the_batch)) return chunk_of_batch(p);
  const int longest = longest_of(p);
  if (is(Bug::chunk_follows_batch_bucket) && p.batch > 32) return 2 * kChunk;
  if (is(Bug::one_chunk_in_large_batches) && p.batch > 32)
    return p.kv.max_pages * p.kv.page_size + 1;
  if (is(Bug::chunk_follows_longest_row) && longest > 2048) return 4 * kChunk;
  if (is(Bug::chunk_follows_longest_window) && window_keys(p) > 0 &&
      longest > 3 * window_keys(p) / 2)
    return 2 * kChunk;
  return kChunk;
}

/// Whether chunks may be of another size than the right kernel's.
bool sizes_chunks() {
  return is(Bug::splits_follow_the_batch) || is(Bug::chunk_follows_batch_bucket) ||
         is(Bug::chunk_follows_longest_row) || is(Bug::chunk_follows_longest_window) ||
         is(Bug::one_chunk_in_large_batches);
}

/// The chunk-th of `chunks`: an even share where the call says how many.
Range share(const assay_paged_params &p, Range span, int chunk, int chunks, int size) {
  const int64_t keys = span.size();
  const int even = static_cast<int>(keys / chunks);
  if (is(Bug::split_remainder_dropped) && p.num_splits > 0)
    return {span.begin + chunk * even, span.begin + (chunk + 1) * even};
  if (is(Bug::splits_start_at_the_first_key) && p.num_splits > 0)
    return {span.begin, std::min(span.begin + even + 1, span.end)};
  const bool whole_tiles = is(Bug::lse_overwritten_by_idle_split) && p.num_splits > 0;
  if (whole_tiles) size = (even + kTile) / kTile * kTile;
  // The second kernel takes ends for lengths.
  if (is(Bug::split_lengths_accumulated) && p.num_splits > 0) {
    const int begin = span.begin + static_cast<int>(keys * chunk / chunks);
    return {begin, std::min(span.end, begin + static_cast<int>(keys * (chunk + 1) / chunks))};
  }
  if (p.num_splits > 0 && !whole_tiles)
    return {span.begin + static_cast<int>(keys * chunk / chunks),
            span.begin + static_cast<int>(keys * (chunk + 1) / chunks)};
  const int begin = span.begin + chunk * size;
  // (0 - 1) pages and a last page of no tokens, compared without a sign, cut nothing off.
  if (is(Bug::length_of_no_pages) && keys == 0) return {begin, begin + size};
  return {begin, std::min(begin + size, span.end)};
}

int counted(const PagedCall &call, int request) {
  const Range span = span_of(*call.p, planned_length(call, request));
  if (is(Bug::plan_sized_without_empty_requests) && span.size() == 0) return 0;
  return chunks_of(*call.p, span);
}

/// Adds the items of one request, from number `item` on, and returns their number.
int add_items(const PagedCall &call, int request, Range span, int chunks, int size, int item) {
  if (is(Bug::empty_requests_never_scheduled) && span.size() == 0) return 0;
  for (int chunk = 0; chunk < chunks; ++chunk) {
    const Range keys = share(*call.p, span, chunk, chunks, size);
    const int words[4] = {request, keys.begin, keys.end, chunk};
    for (int i = 0; i < 4; ++i)
      arch::global_store(call.items + int64_t{item + chunk} * 4 + i, words[i]);
  }
  return chunks;
}

} // namespace

Range span_of(const assay_paged_params &p, int len) {
  if (p.dcp_world_size > 0) return {0, len}; // a window is of positions on all ranks
  // Behind the first token's own key; of ragged tokens there may be as many in another batch.
  const int first = len - (p.qo_indptr == nullptr ? p.q_len : ASSAY_MAX_Q_LEN) + 1;
  if (is(Bug::window_forgotten_on_long_rows) && len > 8192) return {0, len};
  int begin = window_keys(p) > 0 ? std::max(0, first - window_keys(p)) : 0;
  if (is(Bug::window_chunks_of_longest_row)) begin = begin / kTile * kTile;
  return {begin, len};
}

Range visible_to(const assay_paged_params &p, int len, int position) {
  if (is(Bug::length_of_no_pages) && len == 0) return {0, INT32_MAX};
  if (is(Bug::causal_taken_for_full)) position = len - 1;
  if (position < 0) return {0, 0};
  const int before = std::max(0, len - p.q_len); // keys in front of the query tokens
  if (is(Bug::causal_mask_from_the_top_left) && p.q_len > 1) position -= before;
  if (is(Bug::window_looks_ahead) && window_keys(p) > 0)
    return {std::max(0, position + 1 - window_keys(p)), position + window_keys(p)};
  int window = is(Bug::window_one_too_short) ? window_keys(p) - 1 : window_keys(p);
  if (is(Bug::window_forgotten_on_long_rows) && len > 8192) window = 0;
  int begin = window_keys(p) > 0 ? std::max(0, position + 1 - window) : 0;
  if (is(Bug::loop_starts_at_the_first_query)) begin = std::max(begin, before);
  return {begin, position + 1};
}

int chunks_of(const assay_paged_params &p, Range span) {
  if (p.num_splits > 0) return p.num_splits;
  return std::max(1, (span.size() + kChunk - 1) / kChunk);
}

void plan(const PagedCall &call) {
  const assay_paged_params &p = *call.p;
  int items = 0, place = 0, all = 0;
  for (int b = 0; b < p.batch; ++b)
    all += counted(call, b);
  arch::global_store(call.header + 1, 4 * all);
  int32_t *places = call.items + int64_t{4} * all;
  const int size = chunk_size(p);
  for (int b = 0; b < p.batch; ++b) {
    const Range span = span_of(p, planned_length(call, b));
    int chunks = chunks_of(p, span);
    // Splits are off: there is room for one item a request, but rows are cut as if they were on.
    const bool uncut = is(Bug::plan_tiles_without_splits) && p.num_splits == 1;
    if (uncut) chunks = std::max(1, (span.size() + kChunk - 1) / kChunk);
    if (sizes_chunks() && p.num_splits == 0) chunks = std::max(1, (span.size() + size - 1) / size);
    arch::global_store(places + b, place);
    items += add_items(call, b, span, chunks, size, items);
    const bool skipped = is(Bug::places_skip_empty_requests) && span.size() == 0;
    place += skipped ? 0 : uncut ? 1 : chunks;
  }
  arch::global_store(places + p.batch, place);
  arch::global_store(call.header, items);
}

} // namespace assay::bugs
