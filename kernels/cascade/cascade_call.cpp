// SPDX-License-Identifier: Apache-2.0
#include "kernels/cascade/cascade_call.h"

#include "kernels/host/attention_call.h"
#include "kernels/host/device_info.h"
#include "kernels/host/key_tiles.h"
#include "kernels/host/status.h"

#include <algorithm>
#include <array>

namespace assay {
namespace {

/// Where the workspace has what, and its size.
struct CascadeWorkspace {
  int64_t o_accum, lse_accum, bytes;
};

/// Blocks of a level's grid, or in the narrow kernel teams.
int64_t level_blocks(const CascadeShape &shape, const CascadeLevelCall &level) {
  const int64_t rows = cascade_block_rows(shape, level.schedule.path);
  return cascade_tile_slots(level.kv.rows, shape.batch, shape.gqa_group_size, rows) *
         shape.kv_heads * level.schedule.splits;
}

/// The schedule of the levels, and the one whose kernel finishes: the last narrow one of whole
/// segments.
void schedule_levels(const assay_cascade_params &p, CascadeCall &call) {
  std::array<CascadeLevelShape, ASSAY_MAX_CASCADE_LEVELS> shapes{};
  std::array<CascadeLevelSchedule, ASSAY_MAX_CASCADE_LEVELS> schedule{};
  for (int l = 0; l < p.num_levels; ++l) {
    const assay_paged_kv &kv = p.levels[l].kv;
    shapes[l] = {kv.rows, int64_t{kv.max_pages} * kv.page_size};
  }
  schedule_cascade(call.shape, shapes, p.num_levels, p.num_splits, schedule);
  for (int l = 0; l < p.num_levels; ++l) {
    const assay_cascade_level &level = p.levels[l];
    if (level.kv.rows == 0) continue; // covers nobody
    if (schedule[l].path == CascadePath::kNarrow && schedule[l].splits == 1)
      call.finish = call.num_levels;
    call.level[call.num_levels++] = {paged_kv_params(level.kv, 2), level.segment_indptr,
                                     schedule[l], static_cast<int32_t>(call.states)};
    call.states += schedule[l].splits;
  }
  // One launch serves all narrow levels but that one: one size of teams.
  for (int l = 0; l < call.num_levels; ++l)
    if (l != call.finish) call.level[l].schedule.warps = kNarrowWarps;
}

assay_status check_level(const assay_cascade_params &p, int l) {
  for (const int64_t word : p.levels[l].reserved)
    ASSAY_RETURN_IF_ERROR(check_range({l, nullptr, "reserved"}, word, 0, 0));
  ASSAY_RETURN_IF_ERROR(check_paged_kv(p.levels[l].kv, p.num_kv_heads, l));
  if (p.batch == 0 || p.levels[l].kv.rows == 0) return ASSAY_OK;
  return check_pointer({l, nullptr, "segment_indptr"}, p.levels[l].segment_indptr, 4);
}

assay_status build_cascade_shape(const assay_cascade_params *p, CascadeCall &call,
                                 CascadeWorkspace &workspace) {
  ASSAY_RETURN_IF_ERROR(check_struct(p, "assay_cascade_params"));
  ASSAY_RETURN_IF_ERROR(check_target(p->target));
  ASSAY_RETURN_IF_ERROR(check_query_shape(*p));
  ASSAY_RETURN_IF_ERROR(check_range("num_levels", p->num_levels, 1, ASSAY_MAX_CASCADE_LEVELS));
  ASSAY_RETURN_IF_ERROR(check_range("num_splits", p->num_splits, 0, 1 << 12));
  ASSAY_RETURN_IF_ERROR(check_range("reserved", p->reserved, 0, 0));
  ASSAY_RETURN_IF_ERROR(check_pointer("levels", p->levels, alignof(assay_cascade_level)));
  for (int l = 0; l < p->num_levels; ++l)
    ASSAY_RETURN_IF_ERROR(check_level(*p, l));
  const DeviceFacts device = device_facts(p->target);
  ASSAY_RETURN_IF_ERROR(check_device(device));
  const bool narrow_fits = narrow_shared_bytes(p->head_dim) <= device.shared_memory_limit;
  call.shape = {p->batch,    gqa_group_size(*p),     p->num_kv_heads,
                p->head_dim, device.multiprocessors, device.warpgroups,
                narrow_fits};
  schedule_levels(*p, call);
  int64_t blocks = 0;
  for (const CascadeLevelCall &level : call.levels())
    blocks += level_blocks(call.shape, level);
  if (blocks > kMaxGrid)
    return fail(ASSAY_CAPACITY_EXCEEDED,
                "segments * heads * splits needs {} blocks, expected at most {}", blocks, kMaxGrid);
  const int64_t rows = call.states * p->batch * p->num_qo_heads;
  workspace.o_accum = 0;
  workspace.lse_accum = align_up(rows * p->head_dim * int64_t{sizeof(float)});
  workspace.bytes = align_up(workspace.lse_accum + rows * int64_t{sizeof(float)});
  return ASSAY_OK;
}

/// The tiles of a segment: split by split, in the narrow kernel dealt out to its warps.
void add_segment(KeyTileWriter &writer, const CascadeShape &shape,
                 const CascadeLevelSchedule &schedule, int32_t level, int32_t len) {
  const auto head_dim = static_cast<int>(shape.head_dim);
  const int32_t grain = cascade_split_tile(shape, schedule.path);
  const bool narrow = schedule.path == CascadePath::kNarrow;
  const int32_t states = narrow ? schedule.warps : 1;
  const int32_t tile = narrow ? narrow_policy(head_dim).tile : grain;
  for (int32_t split = 0; split < schedule.splits; ++split) {
    const int32_t begin = cascade_split_begin(len, schedule.splits, split, grain);
    const int32_t end = cascade_split_begin(len, schedule.splits, split + 1, grain);
    for (int32_t state = 0; state < states; ++state)
      for (int32_t base = begin + state * tile; base < end; base += states * tile)
        writer.add(level, split, state, base, std::min(base + tile, end));
  }
}

} // namespace

assay_status Cascade::build(const assay_cascade_params *p, CascadeCall &call) {
  CascadeWorkspace workspace;
  ASSAY_RETURN_IF_ERROR(build_cascade_shape(p, call, workspace));
  ASSAY_RETURN_IF_ERROR(check_query_tensors(*p));
  call.dtype = p->dtype;
  call.head_dim = p->head_dim;
  call.empty = p->batch == 0;
  if (call.empty) return ASSAY_OK;
  char *base = nullptr;
  ASSAY_RETURN_IF_ERROR(check_workspace(p->workspace, p->workspace_bytes, workspace.bytes, base));
  call.o_accum = reinterpret_cast<float *>(base + workspace.o_accum);
  call.lse_accum = reinterpret_cast<float *>(base + workspace.lse_accum);
  call.attention = attention_params(*p);
  return ASSAY_OK;
}

assay_status Cascade::workspace_size(const assay_cascade_params *p, uint64_t *bytes) {
  CascadeCall call{};
  CascadeWorkspace workspace;
  ASSAY_RETURN_IF_ERROR(build_cascade_shape(p, call, workspace));
  *bytes = workspace.bytes;
  return ASSAY_OK;
}

assay_status Cascade::key_order(const void *params, assay_key_tile *tiles, int64_t capacity,
                                int64_t *first) {
  const auto &p = *static_cast<const assay_cascade_params *>(params);
  CascadeCall call{};
  CascadeWorkspace workspace;
  ASSAY_RETURN_IF_ERROR(build_cascade_shape(&p, call, workspace));
  KeyTileWriter writer(tiles, capacity, first);
  for (int32_t request = 0; request < p.batch; ++request, writer.end_request()) {
    auto next = call.levels().begin();
    for (int l = 0; l < p.num_levels; ++l) {
      const assay_cascade_level &level = p.levels[l];
      if (level.kv.rows == 0) continue;
      const CascadeLevelSchedule schedule = (next++)->schedule;
      for (int s = 0; s < level.kv.rows; ++s)
        if (request >= level.segment_indptr[s] && request < level.segment_indptr[s + 1])
          add_segment(writer, call.shape, schedule, l, level.kv.seq_lens[s]);
    }
  }
  return set_ok();
}

} // namespace assay
