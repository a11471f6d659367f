// SPDX-License-Identifier: Apache-2.0
#include "kernels/tree/tree_call.h"

#include "kernels/host/attention_call.h"
#include "kernels/plan/host_plan.h"
#include "kernels/plan/host_tree.h"

#include <optional>

namespace assay {
namespace {

struct Shapes {
  PagedShape paged;
  PagedSplit own;
  PrefixTreeShape tree;
};

/// Sharing needs warpgroups, as many query rows in every request, and keys at the positions of
/// their indices, in pages that are the same for all kv heads. Of a window's keys hardly any are in
/// a prefix.
bool may_share(const assay_paged_params &p, const PagedShape &s) {
  // The planner counts bytes in 64 bits, and the rows of a kv head in 32.
  constexpr int kMaxHeads = 1024;
  constexpr int64_t kMaxRows = 1 << 30;
  return p.window_left < 0 && p.qo_indptr == nullptr && p.dcp_world_size == 0 &&
         p.kv.page_table_stride_head == 0 && s.device.warpgroups && s.batch >= 2 &&
         s.batch <= kMaxTreeBatch && p.num_kv_heads <= kMaxHeads &&
         int64_t{s.batch} * s.query_rows <= kMaxRows && p.kv.max_pages > 0 &&
         int64_t{p.kv.max_pages} * p.kv.page_size >= kStartKeys;
}

/// Partial states that a workspace holds: of four turns of all blocks, and two of every row.
int32_t most_states(const assay_paged_params &p, int blocks) {
  constexpr int64_t kMax = 1 << 22;
  const int64_t turns = int64_t{4} * blocks * kTreeRows;
  const int64_t rows = int64_t{2} * p.batch * p.q_len * p.num_qo_heads;
  return static_cast<int32_t>(std::min(kMax, std::max(turns, rows)));
}

/// `paged`: the shape of the call, which must have been checked with the sizes of its cache.
assay_status build_shapes(const assay_paged_params *p, const PagedShape &paged, Shapes &s) {
  s.paged = paged;
  ASSAY_RETURN_IF_ERROR(check_range("num_splits", p->num_splits, 0, 1 << 16));
  ASSAY_RETURN_IF_ERROR(build_paged_split(s.paged, 0, s.own));
  ASSAY_RETURN_IF_ERROR(check_plan_tiles(p->kv, s.own.plan));
  s.tree = {};
  if (!may_share(*p, s.paged)) return ASSAY_OK;
  const int blocks = s.paged.device.multiprocessors;
  s.tree = {.batch = p->batch,
            .query_rows = s.paged.query_rows,
            .q_len = p->q_len,
            .kv_heads = p->num_kv_heads,
            .head_dim = p->head_dim,
            .kv_bytes = s.paged.kv_bytes,
            .page_size = p->kv.page_size,
            .tile = sm90_tile(p->head_dim),
            .blocks = blocks,
            .splits = p->num_splits,
            .max_rows = most_states(*p, blocks)};
  return ASSAY_OK;
}

assay_status build_shapes(const assay_paged_params *p, Shapes &s) {
  PagedShape paged;
  ASSAY_RETURN_IF_ERROR(build_cached_shape(p, paged));
  return build_shapes(p, paged, s);
}

int64_t tree_offset(const Shapes &s) { return align_up(plan_layout(s.own.plan).bytes); }

int64_t plan_bytes(const Shapes &s) {
  return s.tree.batch == 0 ? plan_layout(s.own.plan).bytes
                           : tree_offset(s) + prefix_tree_layout(s.tree).bytes;
}

/// Byte offsets inside the workspace.
struct Workspace {
  int64_t o_accum, lse_accum, shared_o, shared_lse, plan, bytes;
};

Workspace workspace_of(const Shapes &s) {
  const int64_t rows = plan_slots(s.own.plan) * s.own.plan.head_tiles * 8 * s.paged.row_tiles;
  const int64_t shared = s.tree.batch == 0 ? 0 : s.tree.max_rows;
  const int64_t row_bytes = s.paged.head_dim * int64_t{sizeof(float)};
  Workspace w{};
  w.lse_accum = align_up(rows * row_bytes);
  w.shared_o = align_up(w.lse_accum + rows * int64_t{sizeof(float)});
  w.shared_lse = align_up(w.shared_o + shared * row_bytes);
  w.plan = align_up(w.shared_lse + shared * int64_t{sizeof(float)});
  w.bytes = align_up(w.plan + plan_bytes(s));
  return w;
}

TreePlanCall plan_call(const assay_paged_params &p, const Shapes &s, void *plan) {
  return {p.batch == 0,
          false,
          {s.tree, p.kv.page_table, p.kv.seq_lens, p.kv.page_table_stride, p.kv.page_indptr},
          s.own.plan,
          plan};
}

} // namespace

TreeOutput tree_output_of(const TreePlanCall &call) {
  return tree_output(call.tree.shape,
                     static_cast<char *>(call.plan) + align_up(plan_layout(call.own).bytes));
}

assay_status Tree::build(const assay_paged_params *p, TreeCall &call) {
  Shapes s;
  ASSAY_RETURN_IF_ERROR(build_paged_call(p, call.own.paged));
  ASSAY_RETURN_IF_ERROR(build_shapes(p, call.own.paged.shape, s));
  call.empty = call.own.empty = call.own.paged.empty;
  if (call.empty) return ASSAY_OK;
  const Workspace layout = workspace_of(s);
  char *base = nullptr;
  ASSAY_RETURN_IF_ERROR(check_workspace(p->workspace, p->workspace_bytes, layout.bytes, base));
  const auto floats = [&](int64_t offset) { return reinterpret_cast<float *>(base + offset); };
  call.own.split = s.own;
  call.own.partial = {floats(layout.o_accum), floats(layout.lse_accum)};
  call.shared = {floats(layout.shared_o), floats(layout.shared_lse)};
  call.own.run_planner = p->plan == nullptr;
  if (!call.own.run_planner) ASSAY_RETURN_IF_ERROR(check_plan_buffer(*p, plan_bytes(s)));
  call.own.plan = call.own.run_planner ? base + layout.plan : p->plan;
  call.planner = plan_call(*p, s, call.own.plan);
  return ASSAY_OK;
}

assay_status Tree::workspace_size(const assay_paged_params *p, uint64_t *bytes) {
  Shapes s;
  ASSAY_RETURN_IF_ERROR(build_shapes(p, s));
  *bytes = workspace_of(s).bytes;
  return ASSAY_OK;
}

assay_status Tree::key_order(const void *params, assay_key_tile *tiles, int64_t capacity,
                             int64_t *first) {
  const auto &p = *static_cast<const assay_paged_params *>(params);
  Shapes s;
  ASSAY_RETURN_IF_ERROR(build_shapes(&p, s));
  const TreePlanCall call = plan_call(p, s, nullptr);
  PagedKeyOrder order(s.paged, s.own.warps, tiles, capacity, first);
  std::optional<HostTree> tree;
  if (s.tree.batch > 0) tree.emplace(call.tree);
  const RequestItems items(s.own.plan, p.kv.seq_lens, tree ? tree->covered() : nullptr);
  for (int32_t request = 0; request < p.batch; ++request, order.end_request()) {
    int32_t split = 0;
    if (tree)
      for (const KeyRange &r : tree->ranges_of(request))
        order.add_shared(split++, r.begin, r.end, s.tree.tile);
    for (const WorkItem &item : items.of(request))
      order.add({s.own.warps, split++, item.kv_begin, item.kv_end});
  }
  return set_ok();
}

assay_status TreePlan::build(const assay_paged_params *p, TreePlanCall &call) {
  Shapes s;
  ASSAY_RETURN_IF_ERROR(build_shapes(p, s));
  ASSAY_RETURN_IF_ERROR(check_cache(*p, s.paged));
  call = plan_call(*p, s, p->plan);
  return call.empty ? ASSAY_OK : check_plan_buffer(*p, plan_bytes(s));
}

assay_status TreeLengthsPlan::build(const assay_paged_params *p, TreePlanCall &call) {
  Shapes s;
  ASSAY_RETURN_IF_ERROR(build_shapes(p, s));
  call = plan_call(*p, s, p->plan);
  call.keeps_tree = true;
  if (call.empty) return ASSAY_OK;
  ASSAY_RETURN_IF_ERROR(check_pointer("kv.seq_lens", p->kv.seq_lens, 4));
  return check_plan_buffer(*p, plan_bytes(s));
}

assay_status TreePlan::size(const assay_paged_params *p, uint64_t *bytes) {
  Shapes s;
  ASSAY_RETURN_IF_ERROR(build_shapes(p, s));
  *bytes = plan_bytes(s);
  return ASSAY_OK;
}

} // namespace assay
