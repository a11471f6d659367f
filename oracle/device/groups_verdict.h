// SPDX-License-Identifier: Apache-2.0
// Internal: a pair of a group against its bounds, in every tier. One text for the host and for a
// GPU.
#pragma once

#include "oracle/device/groups_along.h"
#include "oracle/device/groups_replay.h"

namespace assay::oracle::device {

/// A row without keys: O is 0 and the LSE -inf. What the call may say instead is the host's.
template <class Team>
ORACLE_HOST_DEVICE inline bool judge_empty(const Call &call, Team &team, const PairWork &pair,
                                           RowVerdict<Team> &verdict) {
  bool open = pair.sink != 0 || call.empty_lse != 0;
  for (int dim = team.rank(); dim < call.dims; dim += team.size()) {
    open = open || output_of(call, pair, dim) != 0.0;
    verdict.take(0, dim, 0.0);
  }
  if (team.rank() == 0 && call.lse != nullptr) {
    const float lse = call.lse[call.lse_at[pair.row] + pair.head * call.lse_stride_head];
    open = open || lse != -HUGE_VALF;
    verdict.take(0, call.dims, 0.0);
  }
  return open;
}

template <class Team>
ORACLE_HOST_DEVICE inline void judge_first(const GroupCall &call, Team &team, int number,
                                           RowVerdict<Team> &verdict) {
  const PairWork &pair = call.pairs[number];
  const int dims = call.base.dims;
  for (int dim = team.rank(); dim < dims; dim += team.size()) {
    const ColumnSums &sums = call.columns[int64_t{number} * dims + dim].sums;
    Enclosure exact = enclose_column(pair.numbers, sums);
    const BudgetTerms budget = budget_of(pair.numbers, pair.tail, sums, exact);
    verdict.judge(0, dim, exact, budget);
  }
}

/// T1, or T2 where the scores are the kernel's own. `columns`: the pair's.
template <class Team>
ORACLE_HOST_DEVICE inline void judge_replay(Team &team, int tier, const PairWork &pair,
                                            const PairColumn *columns, int dims,
                                            RowVerdict<Team> &verdict) {
  if (pair.replayed == 0) return;
  for (int dim = team.rank(); dim < dims; dim += team.size()) {
    const ReplaySums &sums = columns[dim].replayed;
    Enclosure exact = replayed_column(pair.numbers, sums);
    BudgetTerms budget = replay_budget(pair.numbers, pair.tail, pair.replay, sums, exact);
    budget.overflow_possible = false; // T0's say
    verdict.judge(tier, dim, exact, budget);
  }
}

template <class Team>
ORACLE_HOST_DEVICE inline void judge_lse(const Call &call, Team &team, int tier,
                                         const PairWork &pair, RowVerdict<Team> &verdict) {
  if (call.lse == nullptr || team.rank() != 0) return;
  double lse2 = 0.0;
  const Enclosure exact = lse_enclosure(pair.numbers, pair.worst, &lse2);
  BudgetTerms budget;
  budget.total = lse_budget(pair.numbers, lse2);
  verdict.judge(tier, call.dims, exact, budget);
}

/// Behind join_around of the last round. `call`: of the first one.
template <bool kReplays, class Team>
ORACLE_HOST_DEVICE inline void judge_pair(const GroupCall &call, Team &team, int number,
                                          TierElement *elements) {
  const Call &base = call.base;
  const PairWork &pair = call.pairs[number];
  if (pair.row < 0) return;
  RowVerdict<Team> verdict(base, team, elements);
  verdict.start(pair.row, pair.head);
  team.sync();
  if (pair.visible == 0) return verdict.finish(judge_empty(base, team, pair, verdict), true);
  const bool claim = pair.claim != 0;
  const int64_t columns = int64_t{number} * base.dims;
  if (claim) {
    judge_first(call, team, number, verdict);
    judge_along_error(call, team, number, verdict);
    judge_lse(base, team, 0, pair, verdict);
    if constexpr (kReplays) judge_replay(team, 1, pair, call.columns + columns, base.dims, verdict);
    if (kReplays && base.replay_scores != 0) {
      const PairWork &exact = call.exact_pairs[number];
      if (exact.claim != 0) {
        judge_replay(team, 2, exact, call.exact_columns + columns, base.dims, verdict);
        if (exact.replayed != 0) judge_lse(base, team, 2, exact, verdict);
      }
    }
  }
  verdict.finish(!claim, claim);
}

} // namespace assay::oracle::device
