// SPDX-License-Identifier: Apache-2.0
#include "kernels/blocks/split_kv_call.h"

#include "kernels/host/attention_call.h"
#include "kernels/host/device_info.h"

#include <algorithm>

namespace assay {

assay_status check_plan_tiles(const SplitPlanShape &s, int32_t tokens) {
  const int64_t tiles = int64_t{s.batch} * (tiles_of(tokens, s.tile) + kBoundaryTiles);
  if (tiles <= kMaxGrid) return ASSAY_OK;
  return fail(ASSAY_CAPACITY_EXCEEDED,
              "batch {} of up to {} tokens has {} tiles, expected at most {}", s.batch, tokens,
              tiles, kMaxGrid);
}

assay_status build_paged_split(const PagedShape &s, int32_t num_splits, PagedSplit &split) {
  ASSAY_RETURN_IF_ERROR(check_range("num_splits", num_splits, 0, 1 << 16));
  const int64_t batch = s.batch;
  const int sms = multiprocessors(s.target);
  if (sms == 0) return fail(ASSAY_LAUNCH_FAILED, "no CUDA device answers");
  const bool eight_fit = shared_bytes(s, 8) <= shared_memory_limit(s.target);
  split.warps = split_kv_warps(batch, s.head_tiles, num_splits, s.head_dim, sms, eight_fit);
  const DecodePolicy policy = decode_policy(s.head_dim, s.kv_bytes, s.row_tiles, split.warps);
  int64_t workers = batch * num_splits;
  if (num_splits == 0) workers = balanced_workers(int64_t{sms} * policy.min_blocks, s.head_tiles);
  if (std::max(workers, batch) * s.head_tiles > kMaxGrid)
    return fail(ASSAY_CAPACITY_EXCEEDED,
                "batch * heads * splits needs {} blocks, expected at most {}",
                std::max(workers, batch) * s.head_tiles, kMaxGrid);
  split.plan = {.batch = s.batch,
                .head_tiles = static_cast<int32_t>(s.head_tiles),
                .splits = num_splits,
                .workers = static_cast<int32_t>(workers),
                .tile = split.warps * policy.tile,
                .span = s.span};
  return ASSAY_OK;
}

} // namespace assay
