// SPDX-License-Identifier: Apache-2.0
#include "kernels/cascade/cascade_schedule.h"
#include "kernels/launch/call_parts.h"
#include "kernels/launch/calls.h"
#include "kernels/launch/device_info.h"

#include <array>

namespace assay {
namespace {

/// Blocks of a level's grid.
int64_t level_blocks(const CascadeShape &shape, const CascadeLevelCall &level) {
  const int64_t rows = cascade_block_rows(shape, level.schedule.path);
  return cascade_tile_slots(level.kv.rows, shape.batch, shape.group, rows) * shape.kv_heads *
         level.schedule.splits;
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
  const int sms = multiprocessors(p->target);
  if (sms == 0) return fail(ASSAY_LAUNCH_FAILED, "no CUDA device answers");
  call.shape = {p->batch,  p->num_qo_heads / p->num_kv_heads, p->num_kv_heads,
                p->head_dim, sms, has_warpgroups(p->target)};
  std::array<CascadeLevelShape, ASSAY_MAX_CASCADE_LEVELS> shapes{};
  std::array<CascadeLevelSchedule, ASSAY_MAX_CASCADE_LEVELS> schedule{};
  for (int l = 0; l < p->num_levels; ++l) {
    const assay_paged_kv &kv = p->levels[l].kv;
    shapes[l] = {kv.rows, int64_t{kv.max_pages} * kv.page_size};
  }
  schedule_cascade(call.shape, shapes, p->num_levels, p->num_splits, schedule);
  int64_t blocks = 0;
  for (int l = 0; l < p->num_levels; ++l) {
    const assay_cascade_level &level = p->levels[l];
    if (level.kv.rows == 0) continue; // covers nobody
    call.levels.push_back({paged_kv_params(level.kv, 2), level.segment_indptr, schedule[l],
                           static_cast<int32_t>(call.states)});
    if (schedule[l].path == CascadePath::kNarrow && schedule[l].splits == 1)
      call.finish = static_cast<int>(call.levels.size()) - 1;
    call.states += schedule[l].splits;
    blocks += level_blocks(call.shape, call.levels.back());
  }
  // One launch serves all narrow levels but the one that finishes: one size of teams.
  for (size_t l = 0; l < call.levels.size(); ++l)
    if (static_cast<int>(l) != call.finish) call.levels[l].schedule.warps = kNarrowWarps;
  if (blocks > kMaxGrid)
    return fail(ASSAY_CAPACITY_EXCEEDED,
                "segments * heads * splits needs {} blocks, expected at most {}", blocks, kMaxGrid);
  const int64_t rows = call.states * p->batch * p->num_qo_heads;
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
  }
  char *base = nullptr;
  ASSAY_RETURN_IF_ERROR(check_workspace(p->workspace, p->workspace_bytes, call.bytes, base));
  call.o_pointer = reinterpret_cast<float *>(base + call.o_accum);
  call.lse_pointer = reinterpret_cast<float *>(base + call.lse_accum);
  call.attention = attention_params(*p);
  return ASSAY_OK;
}

} // namespace assay
