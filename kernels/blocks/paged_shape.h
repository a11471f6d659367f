// SPDX-License-Identifier: Apache-2.0
// What the shapes of a paged call decide: computed once, after they are checked.
#pragma once

#include "kernels/abi/assay.h"
#include "kernels/blocks/decode_policy.h"
#include "kernels/host/device_info.h"

namespace assay {

/// The query rows of a kv head are the q_len query tokens of its gqa_group_size query heads. A
/// block attends up to 16 of them at once: a head tile, of one or two row tiles of eight.
struct PagedShape {
  assay_target target;
  assay_dtype dtype, kv_dtype;
  int32_t batch, head_dim;
  int32_t kv_bytes;          // bytes of a cache element
  int32_t query_rows;        // query rows of a (request, kv head)
  int32_t row_tiles;         // row tiles of a head tile
  int32_t tiles_per_kv_head; // head tiles that hold all query rows
  int64_t head_tiles;        // head tiles of a request
  int32_t span;              // keys that some query token of a request sees, at most; 0: all
  bool features;             // needs a kernel with features
  DeviceFacts device;        // that executes the call, asked once for all that is decided
};

/// The number of heads must have been checked.
PagedShape paged_shape(const assay_paged_params &params);

/// Positions that some query token of a request sees, 0: all.
inline int32_t visible_positions(const assay_paged_params &p) {
  return p.window_left >= 0 ? p.window_left + p.q_len : 0;
}

/// Shared memory of a block of so many warps.
inline int64_t shared_bytes(const PagedShape &s, int warps) {
  return decode_shared_bytes(s.head_dim, s.kv_bytes, s.row_tiles, warps);
}

/// Checks everything that does not look at a pointer or at the cache.
assay_status build_paged_shape(const assay_paged_params *params, PagedShape &shape);

/// Also checks the sizes of the cache, which determine the sizes of workspace and plan.
assay_status build_cached_shape(const assay_paged_params *params, PagedShape &shape);

/// A row of the page table for every request. Looks at no shape else.
assay_status check_cache_rows(const assay_paged_params &params);

} // namespace assay
