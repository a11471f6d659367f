// SPDX-License-Identifier: Apache-2.0
// A query row: its heads, its keys, and where those lie in the pool.
#include "corpus/bugs/paged_row.h"

#include <algorithm>
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
  if (is(Bug::kv_head_of_a_tile_of_16) && group >= 16) return head / 16 * 16 / group;
  if (is(Bug::kv_head_by_number_of_kv_heads)) return head / p.num_kv_heads % p.num_kv_heads;
  return head / group;
}

int position_of(const assay_paged_params &p, int length, int token) {
  // Blocks of four tokens, each counting its own from the first of the call.
  if (is(Bug::causal_extent_of_another_token)) token %= 4;
  const int position = length - p.q_len + token;
  if (is(Bug::position_of_15_bits_with_tokens) && p.q_len > 1)
    return static_cast<int16_t>(position);
  return position;
}

float factor(const float *scales, int stride, int kv_head) {
  return scales == nullptr ? 1.0f : arch::global_load(scales + kv_head * stride);
}

void add_features(Row &row) {
  const assay_paged_params &p = *row.p;
  const bool skipped = is(Bug::fp8_path_skips_scales) && p.kv_dtype == ASSAY_E4M3;
  row.scale = is(Bug::scale_without_log2e) ? p.sm_scale : p.sm_scale * kLog2E;
  if (!skipped) row.scale *= factor(p.k_scale, p.k_scale_stride, row.kv_head);
  row.cap = p.logits_softcap * kLog2E;
  if (p.alibi_slopes != nullptr) row.slope = arch::global_load(p.alibi_slopes + row.head) * kLog2E;
  if (p.sinks == nullptr) return;
  row.sink = arch::global_load(p.sinks + row.head) * kLog2E;
  // Rows come in eights; the last eight reach beyond the heads of a group of 12.
  const int group = p.num_qo_heads / p.num_kv_heads;
  if (is(Bug::sink_read_past_the_heads) && group % 8 != 0)
    arch::global_load(p.sinks + row.head + 1);
  if (is(Bug::sink_of_the_first_token_only) && row.token > 0) row.sink = kNegInf;
}

/// Keys of the item that the token sees.
Range own_keys(const Range &item, const Range &visible) {
  int end = item.end;
  if (is(Bug::chunk_end_not_masked) && item.size() > 0) end = (end + kTile - 1) / kTile * kTile;
  return {std::max(item.begin, visible.begin), std::min(end, visible.end)};
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
  if (is(Bug::page_stride_from_token_stride)) return int64_t{id} * page_size * pool.token;
  return id * pool.page;
}

/// Element of dim 0. `from` is the key whose page is looked up: the key itself.
int64_t element_of(const Row &row, const Pool &pool, int from, int key) {
  const assay_paged_kv &kv = row.p->kv;
  if (is(Bug::key_index_of_16_bits)) from = key = key & 0xffff;
  const int page = from / kv.page_size;
  const bool first = is(Bug::table_of_first_request_for_long_rows) && row.length > 4096;
  const int32_t *table = kv.page_table + (first ? 0 : row.item.request) * kv.page_table_stride;
  const int32_t id = arch::global_load(table + page);
  int slot = key - page * kv.page_size;
  if (is(Bug::slots_past_128_wrapped)) slot %= 128;
  return page_offset(pool, id, kv.page_size) + slot * pool.token + row.kv_head * pool.head;
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
  row.length = arch::global_load(p.kv.seq_lens + item.request);
  row.position = position_of(p, row.length, token);
  row.visible = visible_to(p, row.length, row.position);
  row.keys = own_keys(item.keys, row.visible);
  add_features(row);
  load_row(p.q, item.request * p.q_stride_batch + token * p.q_stride_token + head * p.q_stride_head,
           p.dtype, p.head_dim, row.q);
}

float score(const Row &row, int tile, int key) {
  const assay_paged_params &p = *row.p;
  const int64_t at = element_of(row, keys_of(p.kv), page_from(row, tile, key, false), key);
  float k[kPiece], sum = 0;
  for (int dim = 0; dim < p.head_dim; dim += kPiece) {
    load_piece(p.kv.k, at + dim, p.kv_dtype, k);
    for (int i = 0; i < kPiece; ++i)
      sum = std::fma(row.q[dim + i], k[i], sum);
  }
  return sum;
}

void load_values(const Row &row, int tile, int key, int dim, float *out) {
  const assay_paged_params &p = *row.p;
  const int64_t at = element_of(row, values_of(p.kv), page_from(row, tile, key, true), key);
  load_piece(p.kv.v, at + dim, p.kv_dtype, out);
}

} // namespace assay::bugs
