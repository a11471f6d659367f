// SPDX-License-Identifier: Apache-2.0
// Where the arrays of a cascade cell's calls lie, on whatever machine.
#pragma once

#include "kernels/abi/assay.h"
#include "kernels/bench/cells/cascade_cells.h"

namespace assay::bench {

/// `sets` times the segments of a cell, no page twice, over one pool: all K pages, then all V
/// pages. The segments of all levels of a set lie in random order, as after some serving.
class CascadeLayout {
public:
  CascadeLayout(const CascadeCell &cell, int sets);

  int sets() const { return sets_; }
  uint64_t pool_bytes() const { return 2 * v_at(); }
  int64_t query_rows() const { return int64_t{cell_.batch} * cell_.num_qo_heads; }
  /// Lengths, offsets and page tables: one array, so that it is copied at once.
  const std::vector<int32_t> &integers() const { return integers_; }

  /// A set's levels over a pool and a copy of integers().
  std::vector<assay_cascade_level> levels(int set, const void *pool, const int32_t *integers) const;

  /// Sizes and dense strides of a call; no pointer.
  assay_cascade_params params(assay_target target) const;

  /// Whether all segments but the last level's are whole pages: then the pages of a request are
  /// those of its segments.
  bool has_flat() const;
  /// A call of paged attention on the same pages: one page table a request.
  assay_paged_params flat_params(assay_target target, int set, const void *pool,
                                 const int32_t *integers) const;

private:
  struct Level {
    int segments, max_pages;
    size_t lens = 0, indptr = 0, tables = 0; // in integers(); tables of [sets, segments, max_pages]
  };
  uint64_t v_at() const {
    return uint64_t(sets_) * pages_per_set_ * page_elements_ * bytes_of(cell_.kv_dtype);
  }
  void add_tables();
  void add_flat_tables();

  CascadeCell cell_;
  int sets_;
  int64_t page_elements_, pages_per_set_ = 0;
  std::vector<Level> levels_;
  std::vector<int32_t> integers_;
  int flat_pages_ = 0;                     // pages of a request
  size_t flat_lens_ = 0, flat_tables_ = 0; // in integers_; tables of [sets, batch, flat_pages]
};

} // namespace assay::bench
