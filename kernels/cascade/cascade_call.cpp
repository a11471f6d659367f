// SPDX-License-Identifier: Apache-2.0
#include "kernels/cascade/cascade_call.h"

#include "kernels/host/attention_call.h"
#include "kernels/host/device_info.h"
#include "kernels/host/key_tiles.h"
#include "kernels/plan/split_plan.h"

#include <algorithm>
#include <string>

namespace assay {
namespace {

/// Keys below which another split of a segment costs more in partials than it gains in parallelism.
constexpr int64_t kMinSplitTokens = 256;
constexpr int64_t kMaxSplits = 64;

/// What shapes and levels decide: the splits of every segment, and the workspace.
struct CascadeShape {
  int splits;
  int64_t o_accum, lse_accum, bytes; // offsets in the workspace, and its size
};

int64_t level_blocks(const assay_cascade_params &p, const assay_paged_kv &kv) {
  const int64_t rows = int64_t{p.batch} * group_size(p);
  return (kv.rows + rows / cascade_policy(p.head_dim).rows()) * p.num_kv_heads;
}

/// Enough splits to give every multiprocessor a block, unless the segments are short.
int choose_splits(const assay_cascade_params &p, int multiprocessors) {
  int64_t blocks = 0, longest = 0;
  for (int l = 0; l < p.num_levels; ++l) {
    blocks += level_blocks(p, p.levels[l].kv);
    longest = std::max(longest, int64_t{p.levels[l].kv.max_pages} * p.levels[l].kv.page_size);
  }
  const int64_t wanted = (2 * multiprocessors + blocks - 1) / std::max<int64_t>(blocks, 1);
  const int64_t useful = (longest + kMinSplitTokens - 1) / kMinSplitTokens;
  return static_cast<int>(std::clamp<int64_t>(std::min(wanted, useful), 1, kMaxSplits));
}

assay_status build_cascade_shape(const assay_cascade_params *p, CascadeShape &shape) {
  ASSAY_RETURN_IF_ERROR(check_struct(p, "assay_cascade_params"));
  ASSAY_RETURN_IF_ERROR(check_target(p->target));
  ASSAY_RETURN_IF_ERROR(check_query_shape(*p));
  ASSAY_RETURN_IF_ERROR(check_range("num_levels", p->num_levels, 1, ASSAY_MAX_CASCADE_LEVELS));
  ASSAY_RETURN_IF_ERROR(check_range("num_splits", p->num_splits, 0, 1 << 12));
  ASSAY_RETURN_IF_ERROR(check_range("reserved", p->reserved, 0, 0));
  ASSAY_RETURN_IF_ERROR(check_pointer("levels", p->levels, alignof(assay_cascade_level)));
  for (int l = 0; l < p->num_levels; ++l)
    ASSAY_RETURN_IF_ERROR(check_paged_kv(format("levels[{}].kv", l), p->levels[l].kv));
  shape.splits = p->num_splits;
  if (shape.splits == 0) {
    const int sms = multiprocessors(p->target);
    if (sms == 0) return fail(ASSAY_LAUNCH_FAILED, "no CUDA device answers");
    shape.splits = choose_splits(*p, sms);
  }
  int64_t blocks = 0;
  for (int l = 0; l < p->num_levels; ++l)
    blocks += level_blocks(*p, p->levels[l].kv) * shape.splits;
  if (blocks > kMaxGrid)
    return fail(ASSAY_CAPACITY_EXCEEDED,
                "segments * heads * splits needs {} blocks, expected at most {}", blocks, kMaxGrid);
  const int64_t rows = int64_t{p->num_levels} * shape.splits * p->batch * p->num_qo_heads;
  shape.o_accum = 0;
  shape.lse_accum = align_up(rows * p->head_dim * int64_t{sizeof(float)});
  shape.bytes = align_up(shape.lse_accum + rows * int64_t{sizeof(float)});
  return ASSAY_OK;
}

} // namespace

assay_status Cascade::build(const assay_cascade_params *p, CascadeCall &call) {
  CascadeShape shape;
  ASSAY_RETURN_IF_ERROR(build_cascade_shape(p, shape));
  ASSAY_RETURN_IF_ERROR(check_query_tensors(*p));
  call.dtype = p->dtype;
  call.head_dim = p->head_dim;
  call.splits = shape.splits;
  call.empty = p->batch == 0;
  if (call.empty) return ASSAY_OK;
  for (int l = 0; l < p->num_levels; ++l) {
    const assay_cascade_level &level = p->levels[l];
    if (level.kv.rows == 0) continue; // covers nobody
    ASSAY_RETURN_IF_ERROR(
        check_pointer(format("levels[{}].segment_indptr", l).c_str(), level.segment_indptr, 4));
    call.levels.push_back({paged_kv_params(level.kv, 2), level.segment_indptr});
  }
  char *base = nullptr;
  ASSAY_RETURN_IF_ERROR(check_workspace(p->workspace, p->workspace_bytes, shape.bytes, base));
  call.o_accum = reinterpret_cast<float *>(base + shape.o_accum);
  call.lse_accum = reinterpret_cast<float *>(base + shape.lse_accum);
  call.attention = attention_params(*p);
  return ASSAY_OK;
}

assay_status Cascade::workspace_size(const assay_cascade_params *p, uint64_t *bytes) {
  CascadeShape shape;
  ASSAY_RETURN_IF_ERROR(build_cascade_shape(p, shape));
  *bytes = shape.bytes;
  return ASSAY_OK;
}

assay_status Cascade::key_order(const void *params, int32_t request, int32_t, assay_key_tile *tiles,
                                int32_t capacity, int32_t *count) {
  const auto &p = *static_cast<const assay_cascade_params *>(params);
  CascadeShape shape;
  ASSAY_RETURN_IF_ERROR(build_cascade_shape(&p, shape));
  const int tile = cascade_policy(p.head_dim).tile;
  KeyTileWriter writer(tiles, capacity);
  for (int l = 0; l < p.num_levels; ++l) {
    const assay_cascade_level &level = p.levels[l];
    for (int s = 0; s < level.kv.rows; ++s) {
      if (request < level.segment_indptr[s] || request >= level.segment_indptr[s + 1]) continue;
      const int32_t len = level.kv.seq_lens[s];
      for (int split = 0; split < shape.splits; ++split) {
        const int32_t end = split_begin(len, shape.splits, split + 1);
        for (int32_t base = split_begin(len, shape.splits, split); base < end; base += tile)
          writer.add(l, split, 0, base, std::min(base + tile, end));
      }
    }
  }
  return writer.finish(count);
}

} // namespace assay
