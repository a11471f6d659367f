// SPDX-License-Identifier: Apache-2.0
// The merge of a row's partials, and its outputs.
#include <algorithm>
#include <atomic>
#include <cmath>

#include "corpus/bugs/bug.h"
#include "corpus/bugs/paged.h"

namespace assay::bugs {
namespace {

/// A row and the places of its partials.
struct Parts {
  int request, token, head, first, count;
};

int merged_chunks(const assay_paged_params &p, int request, int planned) {
  const int len = load_index(p.kv.seq_lens + request);
  if (is(Bug::lse_overwritten_by_idle_split) && is_stored_unmerged(p, len)) return 1;
  if (p.num_splits > 0) return planned;
  // The host counts partitions of another size than the kernel's.
  if (is(Bug::merged_chunks_of_twice_the_size)) return (planned + 1) / 2;
  if (is(Bug::merge_without_window)) return chunks_of(p, {0, len});
  if (is(Bug::chunk_count_rounded_down)) return std::max(1, span_of(p, len).size() / kChunk);
  if (is(Bug::window_chunks_of_longest_row) && window_keys(p) > 0)
    return std::min(planned, chunks_of(p, span_of(p, longest_of(p))));
  if (is(Bug::last_chunk_lost_in_large_batches) && p.batch > 100 && planned > 1) return planned - 1;
  if (is(Bug::combine_holds_256_chunks)) return std::min(256, planned);
  return planned;
}

/// Rows that were merged: the splits of long ones end in another order now and then.
std::atomic<unsigned> merged_rows = 0;
int arrived(int part, int count) {
  return count > 32 && merged_rows / 7 % 2 == 1 ? count - 1 - part : part;
}

int64_t slot_of(const PagedCall &call, const Parts &row, int part) {
  const assay_paged_params &p = *call.p;
  if (is(Bug::combine_order_follows_batch) && p.batch > 1) part = row.count - 1 - part;
  if (is(Bug::combine_order_follows_alignment) && reinterpret_cast<uintptr_t>(p.q) % 256 != 0)
    part = row.count - 1 - part;
  if (is(Bug::combine_order_of_arrival)) part = arrived(part, row.count);
  if (is(Bug::combine_rows_of_padded_requests)) {
    const int padded = (p.q_len + 3) / 4 * 4;
    return (int64_t{row.first + part} * padded + row.token) * p.num_qo_heads + row.head;
  }
  return call.slot(row.first + part, row.token, row.head);
}

/// Where the O of a part lies.
int64_t o_slot_of(const PagedCall &call, Parts row, int part) {
  const assay_paged_params &p = *call.p;
  if (is(Bug::combine_of_128_by_128) && row.count >= 128 && p.head_dim == 128 && part < 128)
    part ^= 1;
  if (is(Bug::combine_of_first_request) && load_index(p.kv.seq_lens + row.request) > 1024)
    row.first = 0;
  const int64_t at = slot_of(call, row, part) * p.head_dim;
  return is(Bug::partial_offset_32_bit) ? static_cast<int32_t>(at) : at;
}

float lse_of(const PagedCall &call, const Parts &row, int part) {
  return arch::global_load(call.partial_lse + slot_of(call, row, part));
}

float weight(float lse, float top) {
  const bool guarded = !is(Bug::combine_guard_discarded) && !is(Bug::combine_weights_from_no_mass);
  if (guarded && lse == kNegInf) return 0;
  if (is(Bug::combine_in_natural_base)) return std::exp(lse - top);
  return std::exp2(lse - top);
}

/// log2 of the mass of all partials, -inf where there is none.
float total_lse(const PagedCall &call, const Parts &row, float top) {
  float sum = 0;
  for (int part = 0; part < row.count; ++part) {
    const float lse = lse_of(call, row, part);
    sum += lse == kNegInf ? 0.0f : std::exp2(lse - top);
  }
  return top + std::log2(sum);
}

/// O and LSE in base 2, from what the partials hold.
float merge(const PagedCall &call, const Parts &row, float *o) {
  const assay_paged_params &p = *call.p;
  float top = kNegInf, sum = 0, part_o[256];
  for (int part = 0; part < row.count; ++part)
    top = std::max(top, lse_of(call, row, part));
  if (is(Bug::combine_scales_maximum_again)) top *= p.sm_scale;
  if (is(Bug::combine_weights_from_no_mass)) top = total_lse(call, row, top);
  for (int part = 0; part < row.count; ++part) {
    const float w = weight(lse_of(call, row, part), top);
    sum += w;
    if (w == 0 && !is(Bug::empty_partials_meet_weight_zero)) continue;
    load_row(call.partial_o, o_slot_of(call, row, part), ASSAY_FP32, p.head_dim, part_o);
    for (int i = 0; i < p.head_dim; ++i)
      o[i] = std::fma(w, part_o[i], o[i]);
  }
  const float inverse = sum == 0 ? 0.0f : 1.0f / sum;
  for (int i = 0; i < p.head_dim; ++i)
    o[i] *= inverse;
  if (is(Bug::lse_of_last_split)) return lse_of(call, row, row.count - 1);
  if (sum == 0) return is(Bug::lse_of_nothing_is_plus_infinity) ? -kNegInf : kNegInf;
  return top + std::log2(sum);
}

int64_t o_at(const assay_paged_params &p, const Parts &row) {
  if (is(Bug::combine_writes_packed_rows))
    return ((int64_t{row.request} * p.q_len + row.token) * p.num_qo_heads + row.head) * p.head_dim;
  if (is(Bug::output_with_strides_of_queries))
    return row.request * p.q_stride_batch + row.token * p.q_stride_token +
           row.head * p.q_stride_head;
  const bool split = is(Bug::combine_without_batch_stride) && row.count > 1;
  if (p.qo_indptr != nullptr)
    return (tokens_of(p, row.request).first + row.token) * p.out_stride_token +
           row.head * p.out_stride_head;
  return (split ? 0 : row.request * p.out_stride_batch) + row.token * p.out_stride_token +
         row.head * p.out_stride_head;
}

bool in_base_2(const assay_paged_params &p) {
  const bool dense = p.q_stride_head == p.head_dim;
  if (is(Bug::lse_base_follows_layout) && !dense) return true;
  return p.lse_base == ASSAY_LSE_BASE_2;
}

int64_t lse_at(const assay_paged_params &p, const Parts &row, int head) {
  const int64_t uniform = int64_t{row.request} * p.q_len + row.token;
  if (is(Bug::lse_written_packed)) return uniform * p.num_qo_heads + head;
  if (p.qo_indptr == nullptr)
    return row.request * p.lse_stride_batch + row.token * p.lse_stride_token +
           head * p.lse_stride_head;
  const int64_t token = tokens_of(p, row.request).first + row.token;
  return (is(Bug::ragged_lse_as_if_uniform) ? uniform : token) * p.lse_stride_token +
         head * p.lse_stride_head;
}

void store_lse(const assay_paged_params &p, const Parts &row, float lse) {
  if (p.lse == nullptr) return;
  int head = row.head;
  const int group = p.num_qo_heads / p.num_kv_heads;
  if (is(Bug::lse_heads_transposed) && row.count > 1)
    head = head % group * p.num_kv_heads + head / group;
  const float unit = is(Bug::lse_converted_twice) ? kLn2 * kLn2 : kLn2;
  arch::global_store(p.lse + lse_at(p, row, head), in_base_2(p) ? lse : lse * unit);
}

float value_scale(const assay_paged_params &p, int head) {
  const int kv_head = head / (p.num_qo_heads / p.num_kv_heads);
  if (is(Bug::value_scale_is_key_scale) && p.v_scale == nullptr && p.k_scale != nullptr)
    return arch::global_load(p.k_scale + kv_head * p.k_scale_stride);
  const bool skipped = is(Bug::fp8_path_skips_scales) && p.kv_dtype == ASSAY_E4M3;
  if (p.v_scale == nullptr || skipped || is(Bug::value_scale_ignored)) return 1;
  const int stride = is(Bug::value_scale_of_first_head) ? 0 : p.v_scale_stride;
  return arch::global_load(p.v_scale + kv_head * stride);
}

/// 0 / 0 in a group of 16 with 16 pages, of which the last is not full; else 1.
float nan_at_sixteen_pages(const assay_paged_params &p, int request) {
  if (!is(Bug::nan_at_sixteen_pages) || p.num_qo_heads / p.num_kv_heads != 16) return 1;
  const int len = load_index(p.kv.seq_lens + request), page_size = p.kv.page_size;
  return len / page_size == 15 && len % page_size != 0 ? NAN : 1;
}

} // namespace

int64_t threads_that_combine(const PagedCall &call) {
  const int64_t rows = call.p->batch * call.rows_of_item();
  // Two blocks for the same rows, one for each half of the dims.
  const bool halves = is(Bug::lse_stored_by_every_value_tile);
  return halves ? 2 * ((rows + kThreads - 1) / kThreads * kThreads) : rows;
}

void combine(const PagedCall &call, int64_t thread) {
  const assay_paged_params &p = *call.p;
  const int64_t rows = p.batch * call.rows_of_item();
  const bool halves = is(Bug::lse_stored_by_every_value_tile);
  const int from = halves && thread / kThreads % 2 == 1 ? p.head_dim / 2 : 0;
  if (halves) thread = thread / kThreads / 2 * kThreads + thread % kThreads;
  const bool guarded = !is(Bug::combine_guard_lost_its_comparison);
  if (guarded ? thread >= rows : thread + rows == 0) return;
  const int request = static_cast<int>(thread / call.rows_of_item());
  const int row_of_request = static_cast<int>(thread % call.rows_of_item());
  const int32_t *places = call.items + arch::global_load(call.header + 1);
  const int first = arch::global_load(places + request);
  const int planned = arch::global_load(places + request + 1) - first;
  const int count = std::min(call.most_merged, merged_chunks(p, request, planned));
  const Parts row{request, row_of_request / p.num_qo_heads, row_of_request % p.num_qo_heads, first,
                  count};
  if (is(Bug::heads_past_eight_unwritten) && row.head % (p.num_qo_heads / p.num_kv_heads) >= 8)
    return;
  if (is(Bug::requests_past_eight_unwritten) && request >= 8) return;
  if (is(Bug::heads_past_32_of_a_group_unwritten) &&
      row.head % (p.num_qo_heads / p.num_kv_heads) >= 32)
    return;
  // One block of 64 rows, token after token.
  const int group = p.num_qo_heads / p.num_kv_heads;
  if (is(Bug::rows_past_64_of_a_group_unwritten) && row.token * group + row.head % group >= 64)
    return;
  if (is(Bug::combine_of_kv_heads) && row.head >= p.num_kv_heads) return;
  const bool guards = !is(Bug::ragged_rows_not_guarded);
  if (guards && row.token >= tokens_of(p, request).count) return;
  ++merged_rows;
  float o[256] = {};
  const float lse = merge(call, row, o);
  const float scale = value_scale(p, row.head) * nan_at_sixteen_pages(p, request);
  for (int i = 0; i < p.head_dim; ++i)
    o[i] *= scale;
  const int wide =
      is(Bug::value_tiles_stored_at_the_first) ? std::min(128, p.head_dim) : p.head_dim;
  for (int dim = 0; dim < p.head_dim && !halves; dim += wide)
    store_row(p.out, o_at(p, row), p.dtype, wide, o + dim);
  if (halves) store_row(p.out, o_at(p, row) + from, p.dtype, p.head_dim / 2, o + from);
  store_lse(p, row, lse);
}

} // namespace assay::bugs
