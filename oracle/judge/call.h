// SPDX-License-Identifier: Apache-2.0
// A call's rows as the bounds take them: which keys, which order, how many splits.
#pragma once

#include <optional>
#include <vector>

#include "kernels/abi/plugin.h"
#include "oracle/bounds/attention_row.h"
#include "oracle/bounds/merge.h"
#include "oracle/exact/row_input.h"
#include "oracle/exact/tile_order.h"
#include "oracle/judge/key_order.h"

namespace assay::oracle {

/** What decides a call besides its parameters: the kernel, by what it declares. */
struct KernelModel {
  assay_arithmetic arithmetic{};
  TileOrderFn order = {};     ///< of all live keys of a request; empty: T0 only
  bool replay_scores = false; ///< T2 as well; block_fma.h says what it assumes
};

/**
 * A kernel's declaration; the attention calls with its key order, asked of the kernel in this
 * process or of `ask`. All must outlive the model.
 */
KernelModel model_of(const assay_kernel &kernel);
KernelModel model_of(const assay_kernel &kernel, const assay_paged_params &params);
KernelModel model_of(const assay_kernel &kernel, const assay_cascade_params &params);
KernelModel model_of(const assay_kernel &kernel, const assay_paged_params &params, AskKeyTiles ask);
KernelModel model_of(const assay_kernel &kernel, const assay_cascade_params &params,
                     AskKeyTiles ask);

/**
 * Into how many parts that are merged through (O, LSE) a row is cut: as declared, or at most. A
 * kernel that chooses for itself may cut between any two keys.
 */
int row_splits(const assay_paged_params &params, const KernelModel &model, int row, int qo_head);
int row_splits(const assay_cascade_params &params, const KernelModel &model, int request,
               int qo_head);

/** The keys of one (query row, kv head), gathered once for the query heads that share them. */
class GroupKeys {
public:
  GroupKeys(const assay_paged_params &params, int row, int kv_head);
  GroupKeys(const assay_cascade_params &params, int request, int kv_head);

  const KeySet &plain() const { return plain_; }
  const KeySet &with_sink(); ///< made when it is first asked for

private:
  assay_dtype operand_;
  KeySet plain_;
  std::optional<KeySet> sunk_;
};

/** One query head of such a row, with all that its problem points to but the keys. */
class HeadRow {
public:
  HeadRow(const assay_paged_params &params, const KernelModel &model, GroupKeys &keys, int row,
          int qo_head);
  HeadRow(const assay_cascade_params &params, const KernelModel &model, GroupKeys &keys,
          int request, int qo_head);
  HeadRow(const HeadRow &) = delete;
  HeadRow &operator=(const HeadRow &) = delete;

  const RowProblem &problem() const { return problem_; }

private:
  template <class Params>
  void fill(const Params &params, const KernelModel &model, GroupKeys &keys, int row, int qo_head);

  std::vector<float> q_;
  TileOrder order_;
  RowProblem problem_;
};

/** The states of one (row, head). */
MergeProblem merge_problem(const assay_merge_state_params &params,
                           const assay_arithmetic &arithmetic, int row, int head);
MergeProblem merge_problem(const assay_merge_states_params &params,
                           const assay_arithmetic &arithmetic, int row, int head);

} // namespace assay::oracle
