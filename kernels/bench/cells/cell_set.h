// SPDX-License-Identifier: Apache-2.0
// Cells of every kind, in the order in which they run.
#pragma once

#include "kernels/bench/cells/cascade_cells.h"
#include "kernels/bench/cells/cells.h"
#include "kernels/bench/cells/merge_cells.h"

namespace assay::bench {

struct CellSet {
  std::vector<Cell> decode;
  std::vector<CascadeCell> cascade;
  std::vector<MergeCell> merge;

  size_t size() const { return decode.size() + cascade.size() + merge.size(); }
};

CellSet standard_cell_set();

/// Those whose name contains `text`.
CellSet select_cells(const CellSet &cells, const std::string &text);

} // namespace assay::bench
