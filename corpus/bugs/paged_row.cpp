// SPDX-License-Identifier: Apache-2.0
// A query row: its heads, its keys, and where those lie in the pool.
#include "corpus/bugs/paged_row.h"

#include <algorithm>
#include <bit>
#include <cmath>

#include "corpus/bugs/bug.h"

namespace assay::bugs {
namespace {

int kv_head_of(const assay_paged_params &p, int head) {
  const int group = p.num_qo_heads / p.num_kv_heads;
  if (is(Bug::kv_head_of_flat_columns)) {
    int columns = 1; // columns of a block: a power of two, which may not divide the group
    while (2 * columns <= std::min(8, group))
      columns *= 2;
    return head / columns * columns / group;
  }
  // The number of a block of 16 heads is divided by heads and not by blocks of a group.
  if (is(Bug::kv_head_of_block_over_group))
    return (head / group * ((group + 15) / 16) + head % group / 16) / group;
  if (is(Bug::kv_head_of_a_tile_of_16) && group >= 16) return head / 16 * 16 / group;
  if (is(Bug::kv_head_by_number_of_kv_heads)) return head / p.num_kv_heads % p.num_kv_heads;
  return head / group;
}

/// The token whose query and position a token has: its own.
int query_of(const assay_paged_params &p, int token) {
  const bool power_of_two = (p.q_len & (p.q_len - 1)) == 0;
  return is(Bug::first_token_for_all) && !power_of_two ? 0 : token;
}

int position_of(const assay_paged_params &p, const Tokens &tokens, int length, int token) {
  // Blocks of four tokens, each counting its own from the first of the call.
  if (is(Bug::causal_extent_of_another_token)) token %= 4;
  const int position = length - tokens.count + token;
  if (is(Bug::position_of_15_bits_with_tokens) && p.q_len > 1)
    return static_cast<int16_t>(position);
  return position;
}

/// What two bytes from the head-th pair on hold, where fp32 numbers lie.
float as_bf16_at(const float *sinks, int head) {
  const auto bits = std::bit_cast<uint32_t>(arch::global_load(sinks + head / 2));
  return std::bit_cast<float>(head % 2 == 1 ? bits & 0xffff0000u : bits << 16);
}

float factor(const float *scales, int stride, int kv_head) {
  return scales == nullptr ? 1.0f : arch::global_load(scales + kv_head * stride);
}

void add_features(Row &row) {
  const assay_paged_params &p = *row.p;
  const bool skipped = is(Bug::fp8_path_skips_scales) && p.kv_dtype == ASSAY_E4M3;
  row.scale = is(Bug::scale_without_log2e) ? p.sm_scale : p.sm_scale * kLog2E;
  if (!skipped) row.scale *= factor(p.k_scale, p.k_scale_stride, row.kv_head);
  const bool capless =
      is(Bug::softcap_ignored) || (is(Bug::softcap_dropped_unless_128_dims) && p.head_dim != 128);
  row.cap = capless ? 0 : p.logits_soft_cap * kLog2E;
  if (p.alibi_slopes != nullptr && !is(Bug::alibi_ignored))
    row.slope = arch::global_load(p.alibi_slopes + row.head) * kLog2E;
  // Slopes are a function of the number of heads, of which other ranks may have more.
  if (p.alibi_slopes != nullptr && is(Bug::alibi_of_local_heads))
    row.slope = std::exp2(-8.0f * (row.head + 1) / p.num_qo_heads) * kLog2E;
  if (p.sinks == nullptr || (is(Bug::shard_without_sink) && p.dcp_world_size > 0)) return;
  row.sink = arch::global_load(p.sinks + row.head) * kLog2E;
  if (is(Bug::sinks_read_as_bf16)) row.sink = as_bf16_at(p.sinks, row.head) * kLog2E;
  if (is(Bug::sink_unscaled_under_softcap) && row.cap > 0) row.sink /= kLog2E;
  // Rows come in eights; the last eight reach beyond the heads of a group of 12.
  const int group = p.num_qo_heads / p.num_kv_heads;
  if (is(Bug::sink_read_past_the_heads) && group % 8 != 0)
    arch::global_load(p.sinks + row.head + 1);
  if (is(Bug::sink_of_the_first_token_only) && row.token > 0) row.sink = kNegInf;
}

/// The first key that a row with a window sees, which is `right`.
int window_begin(const Row &row, int right) {
  const assay_paged_params &p = *row.p;
  const int page_size = p.kv.page_size, group = p.num_qo_heads / p.num_kv_heads;
  if (is(Bug::window_of_the_last_token)) return std::max(0, row.length - window_keys(p));
  if (is(Bug::window_of_the_longest_row))
    return std::max(0, longest_of(p) - p.q_len + row.token + 1 - window_keys(p));
  const bool by_pages =
      is(Bug::window_of_whole_pages) || is(Bug::window_read_to_the_end_of_the_last_page);
  if (by_pages && p.q_len == 1 && window_keys(p) >= page_size) {
    const int pages = (row.length + page_size - 1) / page_size;
    return std::max(right, (pages - window_keys(p) / page_size) * page_size);
  }
  // Rows of a group, token after token, come in tiles of 32.
  const int tile = (row.token * group + row.head % group) / 32 * 32;
  if (is(Bug::window_offset_counted_twice)) return right + tile / group;
  const bool fp8 = p.kv_dtype != p.dtype && p.dtype == ASSAY_BF16 && row.length > window_keys(p);
  const bool one_row = row.token == 3 && row.head == p.num_qo_heads - 1 && row.length % 4 == 0;
  if (is(Bug::window_of_eight_tokens_with_fp8) && p.q_len == 8 && fp8 && one_row) return right + 16;
  return right;
}

/// Keys of the item that the token sees.
Range own_keys(const Range &item, const Range &visible) {
  int end = item.end;
  if (is(Bug::chunk_end_not_masked) && item.size() > 0) end = (end + kTile - 1) / kTile * kTile;
  return {std::max(item.begin, visible.begin), std::min(end, visible.end)};
}

/// Where the keys of a row end that reach the end of the request.
int last_end(const Row &row) {
  const assay_paged_params &p = *row.p;
  const int page_size = p.kv.page_size, len = row.length;
  const int paged = (len + page_size - 1) / page_size * page_size;
  if (is(Bug::last_page_not_masked)) return paged;
  // Eight rows of a tile, of which decode has one, each see one key more.
  if (is(Bug::causal_extent_of_a_tile_of_rows) && p.q_len == 1) return std::min(len + 7, paged);
  const bool windowed = p.q_len == 1 && window_keys(p) >= page_size && len > window_keys(p);
  if (is(Bug::window_read_to_the_end_of_the_last_page) && windowed)
    return std::min(row.visible.begin + window_keys(p), paged);
  return len;
}

struct Pool {
  const void *base;
  int64_t page, token, head; ///< strides
};
Pool keys_of(const assay_paged_kv &kv) {
  return {kv.k, kv.k_stride_page, kv.k_stride_token, kv.k_stride_head};
}
Pool values_of(const assay_paged_kv &kv) {
  return {kv.v, kv.v_stride_page, kv.v_stride_token, kv.v_stride_head};
}

int64_t page_offset(const Pool &pool, int32_t id, int32_t page_size) {
  const uint32_t low = static_cast<uint32_t>(id) * static_cast<uint32_t>(pool.page);
  if (is(Bug::page_offset_signed_32_bit)) return static_cast<int32_t>(low);
  if (is(Bug::page_offset_unsigned_32_bit)) return low;
  if (is(Bug::page_id_of_16_bits)) id &= 0xffff;
  if (is(Bug::page_stride_from_token_stride)) return int64_t{id} * page_size * pool.token;
  return id * pool.page;
}

const int32_t *table_of(const Row &row, int request) {
  const assay_paged_kv &kv = row.p->kv;
  const bool grouped = row.p->num_qo_heads > row.p->num_kv_heads;
  const bool first = (is(Bug::table_of_first_request_for_long_rows) && row.length > 4096) ||
                     (is(Bug::long_rows_without_batch_offset) && row.length >= 1024 && grouped);
  const int64_t stride = is(Bug::table_stride_is_its_width) ? kv.max_pages : kv.page_table_stride;
  return kv.page_table + (first ? 0 : request) * stride;
}

/// The request that a key is taken to belong to, whose number it becomes: counted from the first
/// key of the batch without the ends of pages, and looked up among slots with them.
int request_of_dense_key(const Row &row, int &key) {
  const assay_paged_kv &kv = row.p->kv;
  for (int r = 0; r < row.item.request; ++r)
    key += load_index(kv.seq_lens + r);
  for (int r = 0;; ++r) {
    const int len = load_index(kv.seq_lens + r);
    const int slots = (len + kv.page_size - 1) / kv.page_size * kv.page_size;
    if (key < slots) return r;
    key -= slots;
  }
}

/// Element of dim 0. `from` is the key whose page is looked up: the key itself.
int64_t element_of(const Row &row, const Pool &pool, int from, int key) {
  const assay_paged_kv &kv = row.p->kv;
  if (is(Bug::key_index_of_16_bits)) from = key = key & 0xffff;
  if (is(Bug::first_pages_as_one) && key < kTile && kv.page_size < kTile) from = 0;
  int request = row.item.request;
  if (is(Bug::dense_offsets_into_aligned_slots)) {
    request = request_of_dense_key(row, key);
    from = key;
  }
  const int page = from / kv.page_size;
  const int32_t *table = table_of(row, request);
  if (is(Bug::page_size_taken_for_one))
    return arch::global_load(table + from) * pool.token + row.kv_head * pool.head;
  int32_t id = load_index(table + (is(Bug::page_ids_of_the_first_four) ? page % 4 : page));
  if (is(Bug::next_page_assumed_adjacent) && page % 2 == 1)
    id = arch::global_load(table + page - 1) + 1;
  int slot = key - page * kv.page_size;
  if (is(Bug::slots_past_128_wrapped)) slot %= 128;
  int64_t in_token = slot * pool.token;
  if (is(Bug::token_offset_32_bit)) in_token = static_cast<int32_t>(in_token);
  int64_t in_page = in_token + row.kv_head * pool.head;
  if (is(Bug::head_offset_by_division) && pool.token > 0) in_page -= in_page % pool.token;
  return page_offset(pool, id, kv.page_size) + in_page;
}

/// A query's first element.
int64_t query_at(const Row &row, const Tokens &tokens, int query) {
  const assay_paged_params &p = *row.p;
  const int request = row.item.request;
  if (is(Bug::packed_queries_with_256_dims) && p.head_dim == 256)
    return ((int64_t{request} * p.q_len + query) * p.num_qo_heads + row.head) * p.head_dim;
  int64_t first =
      p.qo_indptr == nullptr ? request * p.q_stride_batch : tokens.first * p.q_stride_token;
  if (is(Bug::query_batch_stride_is_one_token) && p.q_len > 1) first = request * p.q_stride_token;
  const int64_t at = first + query * p.q_stride_token + row.head * p.q_stride_head;
  return is(Bug::query_offset_32_bit) ? static_cast<int32_t>(at) : at;
}

/// Elements of the cache.
void load_cached(const Row &row, const void *base, int64_t at, float *out) {
  load_piece(base, at, row.p->kv_dtype, out);
  if (!is(Bug::e4m3_nan_read_as_480) || row.p->kv_dtype != ASSAY_E4M3) return;
  for (int i = 0; i < kPiece; ++i)
    if (std::isnan(out[i])) out[i] = std::copysign(480.0f, out[i]);
}

/// The first key of its tile that the item holds: its page is there.
int first_of_tile(const Row &row, int tile) { return std::max(tile, row.keys.begin); }

int page_from(const Row &row, int tile, int key, bool values) {
  const int page_size = row.p->kv.page_size;
  const bool straddles = page_size > kTile && page_size % kTile != 0;
  if (is(Bug::tile_within_one_page) && straddles) return first_of_tile(row, tile);
  if (is(Bug::value_page_once_per_two_tiles) && values && row.p->head_dim == 256)
    return first_of_tile(row, tile);
  return key;
}

} // namespace

bool Row::sees(int key) const {
  const int page_size = p->kv.page_size;
  // A page has page_size / kTile tiles, and its last tokens, it seems, are none.
  if (is(Bug::tiles_per_page_rounded_down) && page_size >= kTile &&
      key % page_size >= page_size / kTile * kTile)
    return false;
  return key >= keys.begin && key < keys.end;
}

void make_row(Row &row, const assay_paged_params &p, const Item &item, int token, int head) {
  row.p = &p;
  row.item = item;
  row.token = token;
  row.head = head;
  row.kv_head = kv_head_of(p, head);
  row.length = length_of(p, item.request);
  const Tokens tokens = tokens_of(p, item.request);
  const int query = query_of(p, token);
  const int all =
      p.dcp_world_size > 0 ? arch::global_load(p.global_lens + item.request) : row.length;
  row.position = position_of(p, tokens, all, query);
  row.visible = visible_to(p, all, row.position);
  if (p.dcp_world_size > 0)
    row.visible = {held_of(p, row.visible.begin), held_of(p, row.visible.end)};
  if (is(Bug::shard_causal_by_local_length))
    row.visible.end = std::max(0, position_of(p, tokens, row.length, query) + 1);
  if (window_keys(p) > 0) row.visible.begin = window_begin(row, row.visible.begin);
  row.keys = own_keys(item.keys, row.visible);
  if (row.keys.size() > 0 && row.keys.end == row.length) row.keys.end = last_end(row);
  // A split of keys that are all behind the token, but for the first split.
  if (is(Bug::fully_masked_split_kept_whole) && item.chunk > 0 && row.keys.size() == 0)
    row.keys = item.keys;
  add_features(row);
  load_row(p.q, query_at(row, tokens, query), is(Bug::queries_read_as_bf16) ? ASSAY_BF16 : p.dtype,
           is(Bug::query_chunk_of_128) ? std::max(128, p.head_dim) : p.head_dim, row.q);
}

float score(const Row &row, int tile, int key) {
  const assay_paged_params &p = *row.p;
  const int64_t at = element_of(row, keys_of(p.kv), page_from(row, tile, key, false), key);
  float k[kPiece], sum = 0;
  for (int dim = 0; dim < p.head_dim; dim += kPiece) {
    load_cached(row, p.kv.k, at + dim, k);
    for (int i = 0; i < kPiece; ++i)
      sum = std::fma(row.q[dim + i], k[i], sum);
  }
  return sum;
}

void load_values(const Row &row, int tile, int key, int dim, float *out) {
  const assay_paged_params &p = *row.p;
  const int64_t at = element_of(row, values_of(p.kv), page_from(row, tile, key, true), key);
  load_cached(row, p.kv.v, at + dim, out);
}

} // namespace assay::bugs
