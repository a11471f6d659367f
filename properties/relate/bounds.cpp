// SPDX-License-Identifier: Apache-2.0
#include "properties/relate/bounds.h"
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

} // namespace

RunBounds::RunBounds(const Outcome &run, Sut &sut)
    : run_(run), call_(oracle_call(run.before, sut)) {
  if (const auto *attention = std::get_if<oracle::AttentionRows>(&call_.rows))
    attention_.emplace(*attention, call_.model);
  else
    merges_.emplace(std::get<oracle::MergeRows>(call_.rows), call_.model);
}

OracleRow RunBounds::every_tier(int row, int head, bool replay_scores) {
  oracle::RowProblem problem = attention_->problem(row, head);
  problem.replay_scores = replay_scores;
  return {
      {problem.q.begin(), problem.q.end()}, &attention_->keys(), oracle::attention_row(problem)};
}

RowBound RunBounds::merge_row(int row, int head) {
  const oracle::MergeProblem &problem = merges_->problem(row, head);
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
  return merges_ ? merge_row(row, head) : to_bound(every_tier(row, head, false).reference);
}

int RunBounds::splits(int row) const { return attention_->splits(row); }

} // namespace assay
