// SPDX-License-Identifier: Apache-2.0
#include "properties/relate/bounds.h"
#include "properties/call/params.h"
#include "properties/relate/outcome.h"

#include "oracle/bounds/merge.h"

namespace assay {
namespace {

RowBound to_bound(const oracle::RowReference &row) {
  RowBound out;
  out.claim = row.claim && row.finite_inputs;
  out.empty = row.empty && !row.sunken;
  for (size_t i = 0; i < row.o.size(); ++i) {
    out.o.push_back(row.o[i].mid);
    double total = i < row.t0.size() ? row.t0[i].total : 0;
    if (i < row.t0.size() && row.t0[i].overflow_possible) out.claim = false;
    out.o_radius.push_back(total + row.o[i].rad);
  }
  out.lse = row.lse.mid;
  out.lse_radius = row.lse_budget + row.lse.rad;
  return out;
}

oracle::KernelModel model_of(Sut &sut, const Tensors &inputs, const AbiParams &params) {
  const assay_kernel &kernel = sut.kernel();
  switch (params.family) {
  case Family::kPaged:
    return oracle::model_of(kernel, params.paged, sut.key_tiles(inputs));
  case Family::kCascade:
    return oracle::model_of(kernel, params.cascade, sut.key_tiles(inputs));
  default:
    return oracle::model_of(kernel);
  }
}

template <class F>
auto with_attention(const AbiParams &params, F f) {
  return params.family == Family::kPaged ? f(params.paged) : f(params.cascade);
}

} // namespace

RunBounds::RunBounds(const Outcome &run, Sut &sut)
    : run_(run), params_(input_params(run.before)), model_(model_of(sut, run.before, params_)) {}

oracle::GroupKeys &RunBounds::keys_of(int row, int kv_head) {
  if (!keys_ || keys_row_ != row || keys_head_ != kv_head) {
    with_attention(params_, [&](const auto &p) { keys_.emplace(p, row, kv_head); });
    keys_row_ = row;
    keys_head_ = kv_head;
  }
  return *keys_;
}

OracleRow RunBounds::every_tier(int row, int head, bool replay_scores) {
  oracle::GroupKeys &keys = keys_of(row, head / run_.before.problem.group_size);
  oracle::KernelModel model = model_;
  model.replay_scores = replay_scores;
  return with_attention(params_, [&](const auto &p) -> OracleRow {
    const oracle::HeadRow of_head(p, model, keys, row, head);
    const oracle::RowProblem &problem = of_head.problem();
    return {{problem.q.begin(), problem.q.end()}, &keys.plain(), oracle::attention_row(problem)};
  });
}

RowBound RunBounds::attention_row(int row, int head) {
  return to_bound(every_tier(row, head, false).reference);
}

RowBound RunBounds::merge_row(int row, int head) const {
  const oracle::MergeProblem problem =
      params_.family == Family::kMergeState
          ? oracle::merge_problem(params_.merge_state, model_.arithmetic, row, head)
          : oracle::merge_problem(params_.merge_states, model_.arithmetic, row, head);
  const oracle::MergeReference reference = oracle::merge_row(problem);
  RowBound bound = to_bound(reference.row);
  if (reference.only_state < 0) return bound;
  // One live state: its bits, no error at all.
  const auto first = problem.o.begin() + std::ptrdiff_t{reference.only_state} * problem.head_dim;
  bound.o.assign(first, first + problem.head_dim);
  bound.o_radius.assign(problem.head_dim, 0.0);
  bound.lse = problem.lse[reference.only_state];
  bound.lse_radius = 0;
  return bound;
}

RowBound RunBounds::row(int row, int head) {
  return is_merge(run_.before.problem) ? merge_row(row, head) : attention_row(row, head);
}

int RunBounds::splits(int row, int head) const {
  return with_attention(params_,
                        [&](const auto &p) { return oracle::row_splits(p, model_, row, head); });
}

} // namespace assay
