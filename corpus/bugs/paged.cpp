// SPDX-License-Identifier: Apache-2.0
#include "corpus/bugs/paged.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include "corpus/bugs/bug.h"
#include "corpus/bugs/launch.h"
#include "corpus/bugs/paged_row.h"

namespace assay::bugs {
namespace {

uint64_t rounded(uint64_t bytes) { return (bytes + 15) / 16 * 16; }

/// The most chunks of one request, at the length that its page table has room for.
int64_t most_chunks(const assay_paged_params &p) {
  const int capacity = p.kv.max_pages * p.kv.page_size;
  // At least a quarter of the batch a chunk: five of a request, the rounding included.
  const int more = is(Bug::splits_follow_the_batch) ? 5 : 0;
  return chunks_of(p, {0, capacity}) + more;
}

PagedCall laid_out(const assay_paged_params &p, int64_t chunks) {
  PagedCall call{&p, nullptr, INT32_MAX, p.batch * chunks, nullptr, nullptr, nullptr, nullptr, 0};
  const uint64_t slots = static_cast<uint64_t>(call.most_items * call.rows_of_item());
  const uint64_t items = rounded((4 * static_cast<uint64_t>(call.most_items) + p.batch + 1) * 4);
  const auto base = reinterpret_cast<uintptr_t>(p.workspace); // null while sizes are asked
  uint64_t bytes = 0;
  const auto take = [&](uint64_t some) { return base + std::exchange(bytes, bytes + some); };
  call.header = reinterpret_cast<int32_t *>(take(16));
  call.items = reinterpret_cast<int32_t *>(take(items));
  call.partial_o = reinterpret_cast<float *>(take(slots * p.head_dim * 4));
  call.partial_lse = reinterpret_cast<float *>(take(rounded(slots * 4)));
  call.bytes = bytes;
  return call;
}

uint64_t bytes_of_partial_o(const PagedCall &call) {
  return reinterpret_cast<uintptr_t>(call.partial_lse) -
         reinterpret_cast<uintptr_t>(call.partial_o);
}

/// The user's LSE was the only one that partials were stored for.
bool stores_partial_lse(const assay_paged_params &p) {
  return !is(Bug::partial_lse_only_if_asked) || p.lse != nullptr;
}

/// Normalised O and its LSE in base 2.
void store_partial(const PagedCall &call, const Row &row, State &state) {
  const assay_paged_params &p = *call.p;
  const int32_t *places = call.items + arch::global_load(call.header + 1);
  const int place = arch::global_load(places + row.item.request) + row.item.chunk;
  const bool empty = row.keys.size() == 0 && state.m == kNegInf;
  if (empty && is(Bug::empty_split_not_published)) return;
  int64_t slot = call.slot(place, row.token, row.head), lse_slot = slot;
  if (empty && is(Bug::empty_split_in_wrong_slot))
    lse_slot = call.slot(place - row.item.chunk, row.token, row.head);
  if (empty && is(Bug::empty_split_by_kv_heads))
    lse_slot = (int64_t{place} * p.q_len + row.token) * p.num_kv_heads + row.head;
  if (is(Bug::lse_overwritten_by_idle_split) && is_stored_unmerged(p, row.length))
    lse_slot = call.slot(place - row.item.chunk, row.token, row.head);
  if (is(Bug::partial_lse_past_the_workspace)) lse_slot += call.rows_of_item();
  const bool divided = is(Bug::divided_at_every_tile);
  const float inverse = state.l == 0 ? 0.0f : divided ? 1.0f : 1.0f / state.l;
  for (float &o : state.o) {
    o *= inverse;
    if (is(Bug::partials_in_bf16)) o = as_bf16(o);
  }
  float lse = state.m + std::log2(state.l);
  if (empty && is(Bug::empty_split_counts)) lse = 0;
  if (!empty || !is(Bug::empty_partials_meet_weight_zero))
    store_row(call.partial_o, slot * p.head_dim, ASSAY_FP32, p.head_dim, state.o);
  if (stores_partial_lse(p)) arch::global_store(call.partial_lse + lse_slot, lse);
}

/// The split of a row that has its sink: the first.
bool has_sink(const Row &row) {
  if (is(Bug::sink_in_every_split)) return true;
  // The reduction of rows in one chunk is another function, and has no sink.
  if (is(Bug::sink_dropped_without_split) && chunks_of(*row.p, span_of(*row.p, row.length)) == 1)
    return false;
  if (row.item.chunk == 0) return true;
  // The first split with keys, whose neighbour in front had none and so, it is thought, no sink.
  const bool first = row.item.keys.begin == 0 && row.item.keys.size() > 0;
  return is(Bug::sink_again_behind_empty_split) && first;
}

/// What the registers of a row that ended hold.
State left_behind;
State first_state(const Row &row) {
  // Made where block 0 is: a window may begin behind it.
  const bool skipped = window_keys(*row.p) > 0 && row.item.chunk == 0 && row.keys.begin >= kTile;
  return is(Bug::state_kept_past_block_zero) && skipped ? left_behind : State{};
}

/// Keys whose tiles a thread goes over.
Range tiles_of(const Row &row) {
  const Range &all = row.item.keys;
  if (is(Bug::masked_scores_finite) || is(Bug::maximum_of_masked_tile_is_zero)) return all;
  const bool empty = row.keys.size() == 0;
  if (is(Bug::correction_of_empty_split_is_nan) && empty) return {all.begin, all.begin + 1};
  return row.keys;
}

void read_ahead(const PagedCall &call, const Row &row) {
  const assay_paged_kv &kv = call.p->kv;
  const int32_t *table = kv.page_table + row.item.request * kv.page_table_stride;
  if (is(Bug::first_block_of_empty_row)) {
    // The block of the newest keys, -1 where there are none; only its upper end is checked.
    const int block = (row.keys.end + kTile - 1) / kTile - 1;
    const int page = block < 0 ? -1 : block * kTile / kv.page_size;
    if (page < kv.max_pages) load_index(table + page);
  }
  if (is(Bug::table_entry_past_the_end_read) && row.keys.size() > 0)
    arch::global_load(table + (row.keys.end - 1) / kv.page_size + 1);
  // Every row of the last tile looks up its page, whether there is a key or not.
  const int last = row.keys.size() > 0 ? (row.keys.end - 1) / kTile * kTile : 0;
  for (int key = last; is(Bug::table_entries_of_a_whole_tile) && key < last + kTile; ++key)
    arch::global_load(table + key / kv.page_size);
}

int swizzle(const assay_paged_params &p) {
  constexpr int64_t kL2 = 32 << 20;
  const int64_t capacity = int64_t{p.kv.max_pages} * p.kv.page_size;
  const int64_t head_bytes = std::max<int64_t>(1, capacity * p.head_dim * 2 * 2);
  return static_cast<int>(64 / (kL2 / head_bytes));
}

/// What a host path computes that the kernels here have no use for.
int tuned(const assay_paged_params &p) {
  constexpr int kMultiprocessors = 132;
  if (is(Bug::split_heuristic_divides_by_rows))
    return kMultiprocessors / (p.batch * p.num_kv_heads);
  if (is(Bug::least_chunk_of_large_pages)) return p.kv.max_pages / (128 / p.kv.page_size);
  if (is(Bug::swizzle_of_large_heads)) return swizzle(p);
  return 0;
}

assay_status run_threads(const assay_paged_params &p, int64_t threads, auto body) {
  const auto blocks = (threads + kThreads - 1) / kThreads;
  return launch(p.stream, {blocks, kThreads},
                [&] { body(int64_t{arch::block_idx_x()} * kThreads + arch::thread_idx()); });
}

} // namespace

PagedCall paged_call(const assay_paged_params &p) { return laid_out(p, most_chunks(p)); }

Tokens tokens_of(const assay_paged_params &p, int request) {
  if (p.qo_indptr == nullptr) return {0, p.q_len};
  if (is(Bug::ragged_of_one_token_taken_for_uniform) && p.q_len == 1)
    return {arch::global_load(p.qo_indptr) + request, 1};
  const int first = arch::global_load(p.qo_indptr + request);
  // The array has as many entries as there are requests: the last one has no end.
  if (is(Bug::ragged_starts_one_short) && request == p.batch - 1) return {first, 0};
  return {first, arch::global_load(p.qo_indptr + request + 1) - first};
}

int longest_of(const assay_paged_params &p) {
  int longest = 0;
  for (int b = 0; b < p.batch; ++b)
    longest = std::max(longest, load_index(p.kv.seq_lens + b));
  return longest;
}

int length_of(const assay_paged_params &p, int request) {
  const int held = load_index(p.kv.seq_lens + request);
  if (p.dcp_world_size == 0) return held;
  const int all = arch::global_load(p.global_lens + request), each = all / p.dcp_world_size;
  if (is(Bug::shard_length_rounded_down)) return std::min(held, each);
  if (is(Bug::shard_length_of_interleave_one))
    return each + (p.dcp_rank < all % p.dcp_world_size ? 1 : 0);
  return held;
}

int held_of(const assay_paged_params &p, int tokens) {
  const int round = p.dcp_interleave * p.dcp_world_size;
  const int rest = tokens % round - p.dcp_rank * p.dcp_interleave;
  return tokens / round * p.dcp_interleave + std::clamp(rest, 0, p.dcp_interleave);
}

int position_of_held(const assay_paged_params &p, int key) {
  if (p.dcp_world_size == 0) return key;
  const int round = key / p.dcp_interleave * p.dcp_world_size + p.dcp_rank;
  return round * p.dcp_interleave + key % p.dcp_interleave;
}

void attend(const PagedCall &call, int64_t thread) {
  const assay_paged_params &p = *call.p;
  const int64_t number = thread / call.rows_of_item();
  const int row_of_item = static_cast<int>(thread % call.rows_of_item());
  if (number >= call.most_items) return;
  // Launched for all there can be, as a graph would be.
  const bool masked = !is(Bug::padded_blocks_without_mask);
  if (masked && number >= arch::global_load(call.header)) return;
  const int32_t *words = call.items + 4 * number;
  const Item item{arch::global_load(words),
                  {arch::global_load(words + 1), arch::global_load(words + 2)},
                  arch::global_load(words + 3)};
  const int token = row_of_item / p.num_qo_heads;
  if (token >= tokens_of(p, item.request).count) return;
  Row row;
  make_row(row, p, item, token, row_of_item % p.num_qo_heads);
  read_ahead(call, row);
  State state = first_state(row);
  const Range tiles = tiles_of(row);
  for (int tile = tiles.begin / kTile * kTile; tile < tiles.end; tile += kTile)
    add_tile(row, tile, state);
  if (has_sink(row)) add_sink(row, state);
  if (is(Bug::state_kept_past_block_zero)) left_behind = state;
  store_partial(call, row, state);
}

assay_status paged_supports(const void *params) {
  return static_cast<const assay_paged_params *>(params)->dtype == ASSAY_FIELD61 ? ASSAY_UNSUPPORTED
                                                                                 : ASSAY_OK;
}

assay_status paged_workspace(const void *params, uint64_t *bytes) {
  const auto &p = *static_cast<const assay_paged_params *>(params);
  int64_t chunks = most_chunks(p);
  if (is(Bug::workspace_for_fewer_splits)) chunks = std::min<int64_t>(32, chunks);
  assay_paged_params sized = p;
  if (is(Bug::workspace_per_request)) sized.q_len = 1;
  const PagedCall call = laid_out(sized, chunks);
  *bytes = call.bytes;
  if (is(Bug::workspace_of_output_elements)) *bytes -= bytes_of_partial_o(call) / 2;
  return ASSAY_OK;
}

/// What becomes of the launch: "lost" where the runtime refuses it and nobody says so.
enum class Launch { fits, refused, lost };
Launch launch_of(const assay_paged_params &p) {
  constexpr int kMost = 65535;
  if (is(Bug::batch_in_grid_z) && p.batch > kMost) return Launch::lost;
  if (is(Bug::heads_in_grid_y) && p.num_qo_heads > kMost) return Launch::lost;
  if (is(Bug::requests_times_heads_in_grid_y) && int64_t{p.batch} * p.num_qo_heads > kMost)
    return Launch::refused;
  const int64_t capacity = int64_t{p.kv.max_pages} * p.kv.page_size;
  const int64_t scores = std::min<int64_t>(window_keys(p), capacity);
  const bool large = scores * 4 > 227 * 1024;
  return is(Bug::window_in_shared_memory) && large ? Launch::refused : Launch::fits;
}

assay_status run_paged(const void *params) {
  const assay_paged_params p = as_told(*static_cast<const assay_paged_params *>(params));
  volatile const int hint = tuned(p); // computed, though nothing here follows it
  (void)hint;
  if (p.batch == 0) return ASSAY_OK;
  const Launch grid = launch_of(p);
  if (grid != Launch::fits) return grid == Launch::lost ? ASSAY_OK : ASSAY_LAUNCH_FAILED;
  PagedCall call = paged_call(p);
  keep_plan(call);
  assay_status status = launch(p.stream, {1, 1}, [&] { plan(call); });
  const int64_t threads = call.most_items * call.rows_of_item();
  if (status == ASSAY_OK)
    status = run_threads(p, threads, [&](int64_t thread) { attend(call, thread); });
  if (status == ASSAY_OK)
    status =
        run_threads(p, threads_that_combine(call), [&](int64_t thread) { combine(call, thread); });
  return status;
}

} // namespace assay::bugs
