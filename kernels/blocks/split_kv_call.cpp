// SPDX-License-Identifier: Apache-2.0
#include "kernels/blocks/split_kv_call.h"

#include "kernels/host/attention_call.h"

#include <algorithm>

namespace assay {

assay_status check_plan_tiles(const assay_paged_kv &kv, const SplitPlanShape &s) {
  const int32_t tokens = kv.max_pages * kv.page_size;
  // Rounded up, and without a division: nearly every call.
  constexpr int64_t kMore = 1 + kBoundaryTiles;
  if (s.batch * (tokens + kMore * s.tile) <= kMaxGrid * s.tile) [[likely]]
    return ASSAY_OK;
  const int64_t tiles = int64_t{s.batch} * (tiles_of(tokens, s.tile) + kBoundaryTiles);
  if (tiles <= kMaxGrid) return ASSAY_OK;
  return fail(ASSAY_CAPACITY_EXCEEDED,
              "batch {} of up to {} tokens has {} tiles, expected at most {}", s.batch, tokens,
              tiles, kMaxGrid);
}

assay_status check_plan_buffer(const assay_paged_params &p, int64_t needed) {
  ASSAY_RETURN_IF_ERROR(check_pointer("plan", p.plan, 16));
  if (p.plan_bytes >= static_cast<uint64_t>(needed)) return check_room("plan", p.plan, needed);
  return fail(ASSAY_WORKSPACE_TOO_SMALL, "plan_bytes is {}, batch {} needs {}", p.plan_bytes,
              p.batch, needed);
}

assay_status check_splits(const PagedShape &s, int32_t num_splits) {
  ASSAY_RETURN_IF_ERROR(check_range("num_splits", num_splits, 0, 1 << 16));
  const int64_t blocks = s.head_tiles * s.batch * num_splits;
  if (blocks <= kMaxGrid) return ASSAY_OK;
  return fail(ASSAY_CAPACITY_EXCEEDED,
              "batch * heads * splits needs {} blocks, expected at most {}", blocks, kMaxGrid);
}

assay_status build_paged_split(const PagedShape &s, int32_t num_splits, PagedSplit &split) {
  ASSAY_RETURN_IF_ERROR(check_splits(s, num_splits));
  const int64_t batch = s.batch;
  ASSAY_RETURN_IF_ERROR(check_device(s.device));
  const int sms = s.device.multiprocessors;
  const bool eight_fit = shared_bytes(s, 8) <= s.device.shared_memory_limit;
  split.warps = split_kv_warps(batch, s.head_tiles, num_splits, s.head_dim, sms, eight_fit);
  const DecodePolicy policy = decode_policy(s.head_dim, s.kv_bytes, s.row_tiles, split.warps);
  int64_t workers = batch * num_splits;
  if (num_splits == 0) workers = balanced_workers(int64_t{sms} * policy.min_blocks, s.head_tiles);
  split.plan = {.batch = s.batch,
                .head_tiles = static_cast<int32_t>(s.head_tiles),
                .splits = num_splits,
                .workers = static_cast<int32_t>(workers),
                .tile = split.warps * policy.tile,
                .span = s.span};
  return ASSAY_OK;
}

} // namespace assay
