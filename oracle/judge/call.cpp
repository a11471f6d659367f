// SPDX-License-Identifier: Apache-2.0
#include "oracle/judge/call.h"

#include <algorithm>
#include <set>
#include <string>
#include <utility>

#include "oracle/exact/dtype.h"

namespace assay::oracle {
namespace {

constexpr int kMostSplits = 1024; // of a row that the kernel cuts as it likes

template <class Params>
KernelModel ordered_model(const assay_kernel &kernel, const Params &params, AskKeyTiles ask) {
  KernelModel model = model_of(kernel);
  if (ask)
    model.order = [&params, ask = std::move(ask)](int request, int qo_head) {
      return declared_order(ask, params, request, qo_head);
    };
  return model;
}

int segments(const assay_paged_params &) { return 1; }
int segments(const assay_cascade_params &params) { return params.num_levels; }

/// What the kernel declares, and what the call asks for.
template <class Params>
int64_t declared_splits(const Params &params, const KernelModel &model) {
  const int most = model.arithmetic.max_splits;
  const int wanted = params.num_splits > 0 ? std::min(params.num_splits, most) : most;
  return int64_t{wanted} * segments(params);
}

template <class Params>
int split_limit(const Params &params, const KernelModel &model, size_t keys) {
  const int64_t limit = std::max<int64_t>(declared_splits(params, model), 1);
  return static_cast<int>(std::clamp<int64_t>(std::min<size_t>(keys, kMostSplits), 1, limit));
}

/// An order with more parts than the kernel declares would be judged without their merges.
template <class Params>
void require_splits(const Params &params, const KernelModel &model, const TileOrder &order) {
  std::set<int> splits;
  for (const KeyTile &tile : order)
    if (tile.begin < tile.end) splits.insert(tile.split);
  const auto most = std::max<int64_t>(1, int64_t{model.arithmetic.max_splits} * segments(params));
  if (static_cast<int64_t>(splits.size()) > most)
    throw OrderError(std::to_string(splits.size()) + " splits, max_splits is " +
                     std::to_string(model.arithmetic.max_splits));
}

/// Of the keys that the row sees, counted from the first of them.
TileOrder row_order(const assay_paged_params &params, const KernelModel &model, int row,
                    int qo_head) {
  if (!model.order) return {};
  const KeyRange seen = visible_keys(params, row);
  return clip_order(model.order(row / params.q_len, qo_head), seen.begin, seen.end);
}
TileOrder row_order(const assay_cascade_params &, const KernelModel &model, int request,
                    int qo_head) {
  return model.order ? model.order(request, qo_head) : TileOrder{};
}

size_t visible_count(const assay_paged_params &params, int row) {
  const KeyRange seen = visible_keys(params, row);
  return static_cast<size_t>(seen.end - seen.begin);
}
size_t visible_count(const assay_cascade_params &params, int request) {
  size_t keys = 0;
  for (int level = 0; level < params.num_levels; ++level)
    keys += static_cast<size_t>(level_length(params, level, request));
  return keys;
}

template <class Params>
int splits_of(const Params &params, const KernelModel &model, int row, int qo_head) {
  std::set<int> splits;
  for (const KeyTile &tile : row_order(params, model, row, qo_head))
    if (tile.begin < tile.end) splits.insert(tile.split);
  if (!splits.empty()) return static_cast<int>(splits.size());
  return split_limit(params, model, visible_count(params, row));
}

template <class Params>
MergeProblem empty_problem(const Params &params, const assay_arithmetic &arithmetic) {
  MergeProblem problem;
  problem.head_dim = params.head_dim;
  problem.dtype = params.dtype;
  problem.lse_base = params.lse_base;
  problem.arithmetic = arithmetic;
  return problem;
}

void add_state(MergeProblem &problem, const void *o, int64_t o_at, float lse) {
  problem.lse.push_back(lse);
  for (int i = 0; i < problem.head_dim; ++i)
    problem.o.push_back(load_element(problem.dtype, o, o_at + i));
}

/// Of the row's `keys` keys; empty without a declared one. OrderError names the row.
template <class Params>
TileOrder sound_order(const Params &params, const KernelModel &model, int row, int qo_head,
                      size_t keys) {
  if (!model.order) return {};
  try {
    TileOrder order = row_order(params, model, row, qo_head);
    require_splits(params, model, order);
    require_partition(order, keys);
    return order;
  } catch (const OrderError &e) {
    throw OrderError("declared key order: row " + std::to_string(row) + " head " +
                     std::to_string(qo_head) + ": " + e.what());
  }
}

} // namespace

KernelModel model_of(const assay_kernel &kernel) { return {.arithmetic = kernel.arithmetic}; }
KernelModel model_of(const assay_kernel &kernel, const assay_paged_params &params) {
  return model_of(kernel, params, ask_kernel(kernel, params));
}
KernelModel model_of(const assay_kernel &kernel, const assay_cascade_params &params) {
  return model_of(kernel, params, ask_kernel(kernel, params));
}
KernelModel model_of(const assay_kernel &kernel, const assay_paged_params &params,
                     AskKeyTiles ask) {
  return ordered_model(kernel, params, std::move(ask));
}
KernelModel model_of(const assay_kernel &kernel, const assay_cascade_params &params,
                     AskKeyTiles ask) {
  return ordered_model(kernel, params, std::move(ask));
}

int row_splits(const assay_paged_params &params, const KernelModel &model, int row, int qo_head) {
  return splits_of(params, model, row, qo_head);
}
int row_splits(const assay_cascade_params &params, const KernelModel &model, int request,
               int qo_head) {
  return splits_of(params, model, request, qo_head);
}

GroupKeys::GroupKeys(const assay_paged_params &params, int row, int kv_head)
    : operand_(operand_dtype(params.dtype, is_fp8(params.kv_dtype))),
      plain_(gather_paged(params, row, kv_head)) {}
GroupKeys::GroupKeys(const assay_cascade_params &params, int request, int kv_head)
    : operand_(params.dtype), plain_(gather_cascade(params, request, kv_head)) {}

const KeySet &GroupKeys::with_sink() {
  if (!sunk_) sunk_ = plain_.with_sink(operand_);
  return *sunk_;
}

template <class Params>
void HeadRow::fill(const Params &params, const KernelModel &model, GroupKeys &keys, int row,
                   int qo_head) {
  q_ = gather_query(params, row, qo_head);
  const size_t count = keys.plain().size();
  order_ = sound_order(params, model, row, qo_head, count);
  problem_.features = gather_features(params, qo_head);
  problem_.keys = &keys.plain();
  if (problem_.features.has_sink()) {
    problem_.keys = &keys.with_sink();
    append_sink(order_, static_cast<int>(count));
  }
  problem_.q = q_;
  problem_.dtype = params.dtype;
  problem_.sm_scale = params.sm_scale;
  problem_.lse_base = params.lse_base;
  problem_.arithmetic = model.arithmetic;
  problem_.order = model.order ? &order_ : nullptr;
  problem_.max_splits = split_limit(params, model, count);
  problem_.combine_stages = model.arithmetic.merge_stages;
  problem_.replay_scores = model.replay_scores;
}

HeadRow::HeadRow(const assay_paged_params &params, const KernelModel &model, GroupKeys &keys,
                 int row, int qo_head) {
  fill(params, model, keys, row, qo_head);
}
HeadRow::HeadRow(const assay_cascade_params &params, const KernelModel &model, GroupKeys &keys,
                 int request, int qo_head) {
  fill(params, model, keys, request, qo_head);
}

MergeProblem merge_problem(const assay_merge_state_params &p, const assay_arithmetic &arithmetic,
                           int row, int head) {
  MergeProblem problem = empty_problem(p, arithmetic);
  add_state(problem, p.o_a, row * p.o_a_stride_row + head * p.o_a_stride_head,
            p.lse_a[row * p.lse_a_stride_row + head * p.lse_a_stride_head]);
  add_state(problem, p.o_b, row * p.o_b_stride_row + head * p.o_b_stride_head,
            p.lse_b[row * p.lse_b_stride_row + head * p.lse_b_stride_head]);
  return problem;
}

MergeProblem merge_problem(const assay_merge_states_params &p, const assay_arithmetic &arithmetic,
                           int row, int head) {
  MergeProblem problem = empty_problem(p, arithmetic);
  const int64_t first = p.indptr ? p.indptr[row] : int64_t{row} * p.num_states;
  const int64_t last = p.indptr ? p.indptr[row + 1] : first + p.num_states;
  for (int64_t s = first; s < last; ++s)
    add_state(problem, p.o_in, s * p.o_in_stride_state + head * p.o_in_stride_head,
              p.lse_in[s * p.lse_in_stride_state + head * p.lse_in_stride_head]);
  return problem;
}

} // namespace assay::oracle
