// SPDX-License-Identifier: Apache-2.0
#include "kernels/launch/key_order.h"

#include "kernels/decode/decode_policy.h"
#include "kernels/launch/calls.h"
#include "kernels/launch/checks.h"
#include "kernels/plan/host_plan.h"

#include <algorithm>

namespace assay {
namespace {

/// Appends tiles, counting those that do not fit.
class TileWriter {
public:
  TileWriter(assay_key_tile *tiles, int32_t capacity, int32_t p_parts = 1)
      : tiles_(tiles), capacity_(capacity), p_parts_(p_parts) {}
  void add(int32_t level, int32_t split, int32_t state, int32_t begin, int32_t end) {
    if (count_ < capacity_) tiles_[count_] = {level, split, state, begin, end, p_parts_};
    ++count_;
  }
  assay_status finish(int32_t *count) const {
    *count = count_;
    return set_ok();
  }

private:
  assay_key_tile *tiles_;
  int32_t capacity_, p_parts_, count_ = 0;
};

/// Of the weights in a kernel with so many warps a block.
int32_t p_parts(const assay_paged_params &p, int warps) {
  const int rows = p.num_qo_heads / p.num_kv_heads * p.q_len;
  const bool hooks = decode_variant(p).hooks;
  return rows <= kTwoPartRows && has_two_part_weights(bytes_of_kv(p), warps, hooks) ? 2 : 1;
}

/// A team of warps: warp w takes tiles w, w + warps, ... of the range.
void add_team_range(TileWriter &writer, const assay_paged_params &p, int warps, int32_t split,
                    int32_t begin, int32_t end) {
  const int tile =
      decode_policy(p.head_dim, bytes_of_kv(p), decode_variant(p).row_tiles, kV1Warps).tile;
  for (int warp = 0; warp < warps; ++warp)
    for (int32_t base = begin + warp * tile; base < end; base += warps * tile)
      writer.add(0, split, warp, base, std::min(base + tile, end));
}

/// A segment of a cascade level: split by split, in the narrow kernel dealt out to its warps.
void add_segment(TileWriter &writer, const CascadeShape &shape,
                 const CascadeLevelSchedule &schedule, int32_t level, int32_t len) {
  const auto head_dim = static_cast<int>(shape.head_dim);
  const int32_t grain = cascade_split_tile(shape, schedule.path);
  const bool narrow = schedule.path == CascadePath::kNarrow;
  const int32_t states = narrow ? schedule.warps : 1;
  const int32_t tile =
      narrow ? decode_policy(head_dim, 2, narrow_row_tiles(shape), kNarrowWarps).tile : grain;
  for (int32_t split = 0; split < schedule.splits; ++split) {
    const int32_t begin = cascade_split_begin(len, schedule.splits, split, grain);
    const int32_t end = cascade_split_begin(len, schedule.splits, split + 1, grain);
    for (int32_t state = 0; state < states; ++state)
      for (int32_t base = begin + state * tile; base < end; base += states * tile)
        writer.add(level, split, state, base, std::min(base + tile, end));
  }
}

} // namespace

assay_status v1_key_order(const void *params, int32_t request, int32_t, assay_key_tile *tiles,
                          int32_t capacity, int32_t *count) {
  const auto &p = *static_cast<const assay_paged_params *>(params);
  TileWriter writer(tiles, capacity, p_parts(p, kV1Warps));
  const int32_t len = p.kv.seq_lens[request];
  add_team_range(writer, p, row_warps(p), 0, first_planned(len, visible_span(p)), len);
  return writer.finish(count);
}

assay_status v2_key_order(const void *params, int32_t request, int32_t, assay_key_tile *tiles,
                          int32_t capacity, int32_t *count) {
  const auto &p = *static_cast<const assay_paged_params *>(params);
  V2Workspace layout;
  ASSAY_RETURN_IF_ERROR(v2_workspace(&p, layout));
  const HostPlan plan(layout.shape, p.kv.seq_lens);
  TileWriter writer(tiles, capacity, p_parts(p, layout.warps));
  int split = 0;
  for (const WorkItem &item : items_of_request(plan.view(), request))
    add_team_range(writer, p, layout.warps, split++, item.kv_begin, item.kv_end);
  return writer.finish(count);
}

assay_status cascade_key_order(const void *params, int32_t request, int32_t, assay_key_tile *tiles,
                               int32_t capacity, int32_t *count) {
  const auto &p = *static_cast<const assay_cascade_params *>(params);
  CascadeCall call{};
  ASSAY_RETURN_IF_ERROR(cascade_layout(&p, call));
  TileWriter writer(tiles, capacity);
  auto next = call.levels.begin();
  for (int l = 0; l < p.num_levels; ++l) {
    const assay_cascade_level &level = p.levels[l];
    if (level.kv.rows == 0) continue;
    const CascadeLevelSchedule schedule = (next++)->schedule;
    for (int s = 0; s < level.kv.rows; ++s)
      if (request >= level.segment_indptr[s] && request < level.segment_indptr[s + 1])
        add_segment(writer, call.shape, schedule, l, level.kv.seq_lens[s]);
  }
  return writer.finish(count);
}

} // namespace assay
