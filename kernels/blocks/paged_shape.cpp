// SPDX-License-Identifier: Apache-2.0
#include "kernels/blocks/paged_shape.h"

#include "kernels/abi/plugin.h"
#include "kernels/host/attention_call.h"

#include <algorithm>
#include <cmath>

namespace assay {
namespace {

constexpr int32_t kMaxShards = 1024;

/// Without dcp_world_size the others say nothing, and a caller who sets them has forgotten it.
assay_status check_shard(const assay_paged_params &p) {
  ASSAY_RETURN_IF_ERROR(check_range("dcp_world_size", p.dcp_world_size, 0, kMaxShards));
  ASSAY_RETURN_IF_ERROR(check_range("reserved", p.reserved, 0, 0));
  if (p.dcp_world_size == 0) {
    ASSAY_RETURN_IF_ERROR(check_range("dcp_rank", p.dcp_rank, 0, 0));
    return check_range("dcp_interleave", p.dcp_interleave, 0, 0);
  }
  ASSAY_RETURN_IF_ERROR(check_range("dcp_rank", p.dcp_rank, 0, p.dcp_world_size - 1));
  return check_range("dcp_interleave", p.dcp_interleave, 1, kMaxTokens / p.dcp_world_size);
}

/// KV type, query tokens, window and shard.
assay_status check_cache_shape(const assay_paged_params &p) {
  if (p.kv_dtype != p.dtype && p.kv_dtype != ASSAY_E4M3 && p.kv_dtype != ASSAY_E5M2)
    return fail(ASSAY_UNSUPPORTED, "kv_dtype is {}, supported are dtype {}, 3 (e4m3) and 4 (e5m2)",
                p.kv_dtype, p.dtype);
  ASSAY_RETURN_IF_ERROR(check_range("q_len", p.q_len, 1, ASSAY_MAX_Q_LEN));
  ASSAY_RETURN_IF_ERROR(check_range("window_left", p.window_left, -1, kMaxTokens - 1));
  return check_shard(p);
}

/// The most keys of a cache that lie at so many positions in a row.
int32_t most_keys(const assay_paged_params &p, int32_t positions) {
  if (p.dcp_world_size == 0) return positions;
  const int32_t turn = p.dcp_interleave * p.dcp_world_size;
  return positions / turn * p.dcp_interleave + std::min(positions % turn, p.dcp_interleave);
}

assay_status check_features(const assay_paged_params &p, const PagedShape &shape) {
  const bool fp8 = shape.kv_bytes == 1;
  if (p.dtype == ASSAY_FIELD61 && (fp8 || shape.features))
    return fail(ASSAY_UNSUPPORTED,
                "dtype field61 has plain attention only: kv_dtype {}, q_len 1, no "
                "qo_indptr, window_left, logits_soft_cap, alibi_slopes or sinks",
                p.dtype);
  if (!std::isfinite(p.logits_soft_cap) || p.logits_soft_cap < 0.0f)
    return fail(ASSAY_INVALID_ARGUMENT, "logits_soft_cap is {}, expected finite and >= 0",
                p.logits_soft_cap);
  ASSAY_RETURN_IF_ERROR(check_range("enable_pdl", p.enable_pdl, 0, 1));
  ASSAY_RETURN_IF_ERROR(check_range("even_lengths", p.even_lengths, 0, 1));
  ASSAY_RETURN_IF_ERROR(check_range("k_scale_stride", p.k_scale_stride, 0, 1));
  ASSAY_RETURN_IF_ERROR(check_range("v_scale_stride", p.v_scale_stride, 0, 1));
  if (!fp8 && (p.k_scale != nullptr || p.v_scale != nullptr))
    return fail(ASSAY_UNSUPPORTED, "{} is given, supported with fp8 KV only",
                p.k_scale != nullptr ? "k_scale" : "v_scale");
  return ASSAY_OK;
}

/// Every version has a form with kDecodeWarps warps; v2 takes more only where they fit. Without a
/// device the launch reports that.
assay_status check_shared_memory(const PagedShape &shape) {
  const int64_t needed = shared_bytes(shape, kDecodeWarps),
                limit = shape.device.shared_memory_limit;
  if (limit == 0 || needed <= limit) return ASSAY_OK;
  return fail(ASSAY_UNSUPPORTED,
              "head_dim {} with {} query rows of a kv head needs {} bytes of shared memory in a "
              "block, this device has {}",
              shape.head_dim, shape.query_rows, needed, limit);
}

} // namespace

PagedShape paged_shape(const assay_paged_params &p) {
  PagedShape s{};
  s.target = p.target;
  s.dtype = p.dtype;
  s.kv_dtype = p.kv_dtype;
  s.batch = p.batch;
  s.head_dim = p.head_dim;
  s.kv_bytes = p.kv_dtype == p.dtype ? 2 : 1;
  s.query_rows = p.q_len * gqa_group_size(p);
  s.row_tiles = decode_row_tiles(s.query_rows, p.head_dim);
  s.tiles_per_kv_head = tiles_per_kv_head(s.query_rows, p.head_dim);
  s.head_tiles = int64_t{p.num_kv_heads} * s.tiles_per_kv_head;
  s.span = most_keys(p, visible_positions(p));
  s.features = p.q_len > 1 || p.qo_indptr != nullptr || p.window_left >= 0 ||
               p.logits_soft_cap > 0.0f || p.alibi_slopes != nullptr || p.sinks != nullptr;
  s.device = device_facts(p.target);
  return s;
}

assay_status build_paged_shape(const assay_paged_params *p, PagedShape &shape) {
  ASSAY_RETURN_IF_ERROR(check_struct(p, "assay_paged_params"));
  ASSAY_RETURN_IF_ERROR(check_target(p->target));
  ASSAY_RETURN_IF_ERROR(check_query_shape(*p));
  ASSAY_RETURN_IF_ERROR(check_cache_shape(*p));
  shape = paged_shape(*p);
  ASSAY_RETURN_IF_ERROR(check_features(*p, shape));
  if (shape.batch * shape.head_tiles > kMaxGrid)
    return fail(ASSAY_CAPACITY_EXCEEDED, "batch * heads needs {} blocks, expected at most {}",
                shape.batch * shape.head_tiles, kMaxGrid);
  return check_shared_memory(shape);
}

assay_status build_cached_shape(const assay_paged_params *p, PagedShape &shape) {
  ASSAY_RETURN_IF_ERROR(build_paged_shape(p, shape));
  ASSAY_RETURN_IF_ERROR(check_cache_sizes(p->kv));
  return check_cache_rows(*p);
}

assay_status check_cache_rows(const assay_paged_params &p) {
  if (p.kv.rows == p.batch) return ASSAY_OK;
  return fail(ASSAY_INVALID_ARGUMENT, "kv.rows is {}, expected batch {}", p.kv.rows, p.batch);
}

} // namespace assay
