// SPDX-License-Identifier: Apache-2.0
#include "oracle/judge/problems.h"

#include <algorithm>
#include <set>
#include <string>
#include <utility>

#include "oracle/bounds/row_work.h"

namespace assay::oracle {
namespace {

constexpr int kMaxSplits = 1024; // splits of a row that the kernel cuts as it likes
/// Decoded keys of a list that are kept for its other rows, in floats: 256 MB.
constexpr int64_t kMaxKept = int64_t{1} << 26;

std::set<int> splits_of(const TileOrder &order) {
  std::set<int> splits;
  for (const KeyTile &tile : order)
    if (tile.begin < tile.end) splits.insert(tile.split);
  return splits;
}

/// Keys [begin, begin + count) of a set.
KeySet slice(const KeySet &from, int begin, int count) {
  KeySet keys;
  keys.head_dim = from.head_dim;
  keys.v_dim = from.v_dim;
  const auto cut = [&](const std::vector<float> &values, int width) {
    const auto first = values.begin() + std::ptrdiff_t{begin} * width;
    return std::vector<float>(first, first + std::ptrdiff_t{count} * width);
  };
  keys.k = cut(from.k, from.head_dim);
  keys.v = cut(from.v, from.value_dim());
  return keys;
}

} // namespace

RowProblem common_problem(const AttentionRows &rows, const KernelModel &model) {
  RowProblem problem;
  problem.dtype = rows.q_dtype;
  problem.o_dtype = rows.out.dtype;
  problem.sm_scale = rows.sm_scale;
  problem.lse_base = rows.out.lse_base;
  problem.arithmetic = model.arithmetic;
  problem.combine_stages = model.arithmetic.merge_stages;
  problem.replay_scores = model.replay_scores;
  problem.features.fp8 = rows.fp8();
  problem.features.scale_blocks = rows.scale_blocks();
  problem.features.q_scaled = !rows.q_scale.empty();
  problem.features.softcap = rows.softcap;
  problem.features.alibi = rows.alibi;
  problem.features.sinks = rows.sinks;
  problem.features.o_scale = rows.o_scale;
  return problem;
}

AttentionReader::AttentionReader(const AttentionRows &rows, const KernelModel &model, Memory memory)
    : rows_(rows), model_(model), memory_(std::move(memory)),
      seen_(static_cast<size_t>(rows.lists())) {
  for (size_t row = 0; row < rows.list.size(); ++row) {
    if (rows.begin[row] == rows.end[row]) continue;
    Seen &seen = seen_[static_cast<size_t>(rows.list[row])];
    seen.begin = seen.rows == 0 ? rows.begin[row] : std::min(seen.begin, rows.begin[row]);
    seen.end = std::max(seen.end, rows.end[row]);
    ++seen.rows;
  }
  problem_ = common_problem(rows, model);
}

int AttentionReader::split_limit(size_t keys) const {
  // What the kernel declares, and what the call asks for.
  const int most = model_.arithmetic.max_splits;
  const int wanted = rows_.num_splits > 0 ? std::min(rows_.num_splits, most) : most;
  const int64_t limit = std::max<int64_t>(int64_t{wanted} * rows_.levels, 1);
  return static_cast<int>(std::clamp<int64_t>(std::min<size_t>(keys, kMaxSplits), 1, limit));
}

/// An order with more parts than the kernel declares would be judged without their merges.
void AttentionReader::require_splits(const TileOrder &order) const {
  const auto splits = static_cast<int64_t>(splits_of(order).size());
  const int declared = model_.arithmetic.max_splits;
  if (splits > std::max<int64_t>(1, int64_t{declared} * rows_.levels))
    throw OrderError(OrderError::Kind::kTooManySplits,
                     std::to_string(splits) + " splits, max_splits is " + std::to_string(declared));
}

/// The order of the keys that the row sees, counted from the first of them.
TileOrder AttentionReader::row_order(int row) const {
  if (!model_.order) return {};
  const auto at = static_cast<size_t>(row);
  return clip_order(declared_order(*model_.order, rows_, rows_.list[at]), rows_.begin[at],
                    rows_.end[at]);
}

int AttentionReader::splits(int row) const {
  const std::set<int> splits = splits_of(row_order(row));
  return splits.empty() ? split_limit(static_cast<size_t>(rows_.keys(row)))
                        : static_cast<int>(splits.size());
}

void AttentionReader::turn_to_row(int row) {
  if (row_ == row) return;
  row_ = row;
  kv_head_ = -1;
  const auto keys = static_cast<size_t>(rows_.keys(row));
  problem_.max_splits = split_limit(keys);
  problem_.span = rows_.span.empty() ? 0 : rows_.span[static_cast<size_t>(row)];
  if (!model_.order) return;
  try {
    order_ = row_order(row);
    require_splits(order_);
    require_partition(order_, keys);
  } catch (const OrderError &e) {
    row_ = -1;
    throw OrderError(e.kind, "declared key order: row " + std::to_string(row) + ": " + e.what());
  }
  if (!rows_.sinks) return;
  sunk_order_ = order_;
  append_sink(sunk_order_, static_cast<int>(keys));
}

void AttentionReader::turn_to_keys(int row, int kv_head) {
  if (kv_head_ == kv_head) return;
  kv_head_ = kv_head;
  sunk_keys_.reset();
  const auto at = static_cast<size_t>(row);
  const int list = rows_.list[at], begin = rows_.begin[at], end = rows_.end[at];
  const Seen &seen = seen_[static_cast<size_t>(list)];
  const auto kv_heads = static_cast<size_t>(rows_.heads.back().kv_head) + 1;
  const int64_t kept = int64_t{seen.end - seen.begin} * (rows_.head_dim + rows_.out.dims) *
                       static_cast<int64_t>(kv_heads);
  if (seen.rows > 1 && begin < end && kept <= kMaxKept) {
    if (list_ != list) list_keys_.assign(kv_heads, std::nullopt);
    list_ = list;
    auto &all = list_keys_[static_cast<size_t>(kv_head)];
    if (!all) all = read_keys(rows_, memory_, list, kv_head, seen.begin, seen.end);
    keys_ = slice(*all, begin - seen.begin, end - begin);
  } else {
    keys_ = read_keys(rows_, memory_, list, kv_head, begin, end);
  }
  keys_.finish(operand());
}

const RowProblem &AttentionReader::problem(int row, int head) {
  turn_to_row(row);
  turn_to_keys(row, rows_.heads[static_cast<size_t>(head)].kv_head);
  q_ = read_query(rows_, memory_, row, head);
  problem_.q = q_;
  problem_.features = features_of(rows_, row, head);
  const bool sunk = problem_.features.has_sink();
  if (sunk && !sunk_keys_) sunk_keys_ = keys_.with_sink(operand());
  problem_.keys = sunk ? &*sunk_keys_ : &keys_;
  problem_.order = !model_.order ? nullptr : sunk ? &sunk_order_ : &order_;
  return problem_;
}

const TileOrder *AttentionReader::order(int row) {
  turn_to_row(row);
  return model_.order ? &order_ : nullptr;
}

RowShape AttentionReader::shape(int row, bool sink, const ErrorModel &model) {
  turn_to_row(row);
  problem_.features.sinks = rows_.sinks;
  problem_.order = !model_.order ? nullptr : sink ? &sunk_order_ : &order_;
  return shape_of_row(problem_, model, static_cast<size_t>(rows_.keys(row)) + (sink ? 1 : 0));
}

MergeReader::MergeReader(const MergeRows &rows, const KernelModel &model, Memory memory)
    : rows_(rows), memory_(std::move(memory)) {
  problem_.head_dim = rows.out.dims;
  problem_.dtype = rows.out.dtype;
  problem_.lse_base = rows.out.lse_base;
  problem_.arithmetic = model.arithmetic;
}

const MergeProblem &MergeReader::problem(int row, int head) {
  States states = read_states(rows_, memory_, row, head);
  problem_.o = std::move(states.o);
  problem_.lse = std::move(states.lse);
  return problem_;
}

} // namespace assay::oracle
