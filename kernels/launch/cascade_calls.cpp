// SPDX-License-Identifier: Apache-2.0
#include "kernels/cascade/cascade_policy.h"
#include "kernels/launch/call_parts.h"
#include "kernels/launch/calls.h"
#include "kernels/launch/device_info.h"

#include <algorithm>

namespace assay {
namespace {

/// Keys below which another split of a segment costs more in partials than it gains in parallelism.
constexpr int64_t kMinSplitTokens = 256;
constexpr int64_t kMaxSplits = 64;

int64_t level_blocks(const assay_cascade_params &p, const assay_paged_kv &kv) {
  const int64_t group = p.num_qo_heads / p.num_kv_heads;
  return (kv.rows + int64_t{p.batch} * group / cascade_policy(p.head_dim).rows()) * p.num_kv_heads;
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

} // namespace

assay_status cascade_layout(const assay_cascade_params *p, CascadeCall &call) {
  ASSAY_RETURN_IF_ERROR(check_struct(p, "assay_cascade_params"));
  ASSAY_RETURN_IF_ERROR(check_target(p->target));
  ASSAY_RETURN_IF_ERROR(check_decode_shape(*p));
  ASSAY_RETURN_IF_ERROR(check_range("num_levels", p->num_levels, 1, ASSAY_MAX_CASCADE_LEVELS));
  ASSAY_RETURN_IF_ERROR(check_range("num_splits", p->num_splits, 0, 1 << 12));
  ASSAY_RETURN_IF_ERROR(check_range("reserved", p->reserved, 0, 0));
  ASSAY_RETURN_IF_ERROR(check_pointer("levels", p->levels, alignof(assay_cascade_level)));
  for (int l = 0; l < p->num_levels; ++l)
    ASSAY_RETURN_IF_ERROR(check_paged_kv(fmt::format("levels[{}].kv", l), p->levels[l].kv));
  call.empty = p->batch == 0;
  call.splits = p->num_splits;
  if (call.splits == 0) {
    const int sms = multiprocessors(p->target);
    if (sms == 0) return fail(ASSAY_LAUNCH_FAILED, "no CUDA device answers");
    call.splits = choose_splits(*p, sms);
  }
  int64_t blocks = 0;
  for (int l = 0; l < p->num_levels; ++l)
    blocks += level_blocks(*p, p->levels[l].kv) * call.splits;
  if (blocks > kMaxGrid)
    return fail(ASSAY_CAPACITY_EXCEEDED,
                "segments * heads * splits needs {} blocks, expected at most {}", blocks, kMaxGrid);
  const int64_t rows = int64_t{p->num_levels} * call.splits * p->batch * p->num_qo_heads;
  call.o_accum = 0;
  call.lse_accum = align_up(rows * p->head_dim * int64_t{sizeof(float)});
  call.bytes = align_up(call.lse_accum + rows * int64_t{sizeof(float)});
  return ASSAY_OK;
}

assay_status build_cascade_call(const assay_cascade_params *p, CascadeCall &call) {
  ASSAY_RETURN_IF_ERROR(cascade_layout(p, call));
  ASSAY_RETURN_IF_ERROR(check_rows(*p));
  if (call.empty) return ASSAY_OK;
  for (int l = 0; l < p->num_levels; ++l) {
    const assay_cascade_level &level = p->levels[l];
    if (level.kv.rows == 0) continue; // covers nobody
    ASSAY_RETURN_IF_ERROR(check_pointer(fmt::format("levels[{}].segment_indptr", l).c_str(),
                                        level.segment_indptr, 4));
    call.levels.push_back({paged_kv_params(level.kv, 2), level.segment_indptr});
  }
  char *base = nullptr;
  ASSAY_RETURN_IF_ERROR(check_workspace(p->workspace, p->workspace_bytes, call.bytes, base));
  call.o_pointer = reinterpret_cast<float *>(base + call.o_accum);
  call.lse_pointer = reinterpret_cast<float *>(base + call.lse_accum);
  call.attention = attention_params(*p);
  return ASSAY_OK;
}

} // namespace assay
