// SPDX-License-Identifier: Apache-2.0
// The rows of a call as the bounds take them: decoded, with what the kernel declares.
#pragma once

#include <memory>
#include <optional>
#include <vector>

#include "kernels/abi/plugin.h"
#include "oracle/bounds/attention_row.h"
#include "oracle/bounds/merge.h"
#include "oracle/bounds/row_numbers.h"
#include "oracle/judge/key_order.h"
#include "oracle/rows/read.h"

namespace assay::oracle {

/** What decides a call besides its rows: the kernel, by what it declares. */
struct KernelModel {
  assay_arithmetic arithmetic{};
  std::shared_ptr<const KeyOrder> order = {}; ///< null: any order of keys, so T0 only
  bool replay_scores = false;                 ///< T2 as well; block_fma.h says what it assumes
};

/** What the rows of a call have in common: no keys, no query, no head's own features. */
RowProblem common_problem(const AttentionRows &rows, const KernelModel &model);

/**
 * Problems of attention rows, one at a time. Heads of a group that are asked about one after
 * another share their keys, and so do the query rows of a list. Rows must outlive it.
 */
class AttentionReader {
public:
  AttentionReader(const AttentionRows &rows, const KernelModel &model, Memory memory = {});
  AttentionReader(const AttentionReader &) = delete;
  AttentionReader &operator=(const AttentionReader &) = delete;

  /** Valid until the next call. Throws OrderError, which names the row, for a declared order that
     is none: not a partition of the row's keys, or in more splits than the kernel declares. */
  const RowProblem &problem(int row, int head);
  /** The keys of the row that was asked about last, without a sink. */
  const KeySet &keys() const { return keys_; }

  /** Into what the keys of the row are cut; `sink`: with one that counts. Throws as problem(). */
  RowShape shape(int row, bool sink, const ErrorModel &model);

  /** The tiles of the row's keys, without a sink; null where no order is declared. Valid until the
      next call. Throws as problem(). */
  const TileOrder *order(int row);

  /** Into how many parts that are merged through (O, LSE) a row is cut: as declared, or at most. A
      kernel that chooses for itself may cut between any two keys. */
  int splits(int row) const;

private:
  void turn_to_row(int row);
  void turn_to_keys(int row, int kv_head);
  TileOrder row_order(int row) const;
  int split_limit(size_t keys) const;
  void require_splits(const TileOrder &order) const;
  assay_dtype operand() const {
    return operand_dtype(rows_.q_dtype, rows_.fp8(), model_.arithmetic.kv_format);
  }

  const AttentionRows &rows_;
  const KernelModel model_;
  const Memory memory_;
  /// How many rows see keys of a list, and the range that holds all of those.
  struct Seen {
    int rows = 0, begin = 0, end = 0;
  };
  std::vector<Seen> seen_;      ///< [lists]
  int row_ = -1, kv_head_ = -1; ///< row and kv head of keys_; order_ belongs to row_
  int list_ = -1;               ///< list of list_keys_
  std::vector<std::optional<KeySet>> list_keys_; ///< [kv heads] where several rows share a list
  KeySet keys_;
  std::optional<KeySet> sunk_keys_;
  TileOrder order_, sunk_order_;
  std::vector<float> q_;
  RowProblem problem_;
};

/** Problems of merges. */
class MergeReader {
public:
  MergeReader(const MergeRows &rows, const KernelModel &model, Memory memory = {});

  const MergeProblem &problem(int row, int head); ///< valid until the next call

private:
  const MergeRows &rows_;
  const Memory memory_;
  MergeProblem problem_;
};

/** `body(reader, outputs)` with the reader of either kind of rows. */
template <class Body>
auto with_reader(const CallRows &rows, const KernelModel &model, const Memory &memory, Body body) {
  if (const auto *attention = std::get_if<AttentionRows>(&rows)) {
    AttentionReader reader(*attention, model, memory);
    return body(reader, attention->out);
  }
  const auto &merges = std::get<MergeRows>(rows);
  MergeReader reader(merges, model, memory);
  return body(reader, merges.out);
}

} // namespace assay::oracle
