// SPDX-License-Identifier: Apache-2.0
// What the shapes of a paged call decide: computed once, after they are checked.
#pragma once

#include "kernels/abi/assay.h"
#include "kernels/decode/decode_policy.h"
#include "kernels/host/attention_call.h"

namespace assay {

/// The query rows of a kv head are the q_len query tokens of its group_size query heads. A block
/// attends up to 16 of them at once: a head tile, of one or two row tiles of eight.
struct PagedShape {
  assay_target target;
  assay_dtype dtype, kv_dtype;
  int32_t batch, head_dim;
  int32_t kv_bytes;          // of a cache element
  int32_t query_rows;        // of a (request, kv head)
  int32_t row_tiles;         // of a head tile
  int32_t tiles_per_kv_head; // head tiles that hold all query rows
  int64_t head_tiles;        // of a request
  int32_t span;              // keys that some query token of a request sees, 0: all
  bool features;             // needs a kernel with features; not known to a plan
};

/// Params is assay_paged_params or assay_plan_params: what a plan depends on has the same names.
/// The number of heads must have been checked.
template <class Params>
PagedShape paged_shape(const Params &p) {
  PagedShape s{};
  s.target = p.target;
  s.dtype = p.dtype;
  s.kv_dtype = p.kv_dtype;
  s.batch = p.batch;
  s.head_dim = p.head_dim;
  s.kv_bytes = p.kv_dtype == p.dtype ? 2 : 1;
  s.query_rows = p.q_len * group_size(p);
  s.row_tiles = decode_row_tiles(s.query_rows, p.head_dim);
  s.tiles_per_kv_head = tiles_per_kv_head(s.query_rows, p.head_dim);
  s.head_tiles = int64_t{p.num_kv_heads} * s.tiles_per_kv_head;
  s.span = p.window > 0 ? p.window + p.q_len - 1 : 0;
  if constexpr (requires { p.sinks; })
    s.features = p.q_len > 1 || p.window > 0 || p.logits_softcap > 0.0f ||
                 p.alibi_slopes != nullptr || p.sinks != nullptr;
  return s;
}

/// Shared memory of a block of so many warps.
inline int64_t shared_bytes(const PagedShape &s, int warps) {
  return decode_shared_bytes(s.head_dim, s.kv_bytes, s.row_tiles, warps);
}

/// KV type, query tokens and window. Params as above.
template <class Params>
assay_status check_cache_shape(const Params &p) {
  if (p.kv_dtype != p.dtype && p.kv_dtype != ASSAY_E4M3 && p.kv_dtype != ASSAY_E5M2)
    return fail(ASSAY_UNSUPPORTED, "kv_dtype is {}, supported are dtype {}, 3 (e4m3) and 4 (e5m2)",
                p.kv_dtype, p.dtype);
  ASSAY_RETURN_IF_ERROR(check_range("q_len", p.q_len, 1, ASSAY_MAX_Q_LEN));
  return check_range("window", p.window, 0, kMaxTokens);
}

/// Checks everything that does not look at a pointer.
assay_status build_paged_shape(const assay_paged_params *params, PagedShape &shape);

} // namespace assay
