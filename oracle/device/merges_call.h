// SPDX-License-Identifier: Apache-2.0
// Internal: a call of merges as the text that judges it takes it. Plain data; arrays where it runs.
#pragma once

#include "oracle/bounds/merge_formulas.h"
#include "oracle/device/make_call.h"
#include "oracle/device/merges.h"

namespace assay::oracle::device {

struct MergeCall {
  const StateArray *arrays;
  const StoredState *states;
  const int64_t *first; ///< [rows + 1] states of a row
  const unsigned char *o;
  const float *lse; ///< null: none is written
  const int64_t *o_at, *lse_at;
  int64_t out_stride_head, lse_stride_head;
  MergeFacts facts;
  assay_dtype dtype;
  int32_t empty_lse, dims, heads;
  int64_t pairs;
  int64_t most_states; ///< of a row
  double *scratch;     ///< [teams, team_scratch()] weights and omegas of states, errors of elements
  TierRow *rows;       ///< [pairs]
  unsigned long long *budgets;
  ElementBounds *elements; ///< [pairs, dims + 1, 3]; null: nobody asks

  ORACLE_HOST_DEVICE int64_t team_scratch() const { return 2 * most_states + dims; }
};

inline constexpr int kMergeArrays = 5;

/** All but scratch and results. */
MergeCall make_merge_call(const MergeRows &rows, const CallOutputs &outputs,
                          const KernelModel &model, const Place &place);

} // namespace assay::oracle::device
