// SPDX-License-Identifier: Apache-2.0
#include "kernels/bench/cells/cell_set.h"

namespace assay::bench {

CellSet standard_cell_set() {
  return {standard_cells(), standard_cascade_cells(), standard_merge_cells()};
}

CellSet select_cells(const CellSet &cells, const std::string &text) {
  CellSet selected = cells;
  const auto other = [&](const auto &cell) { return cell.name.find(text) == std::string::npos; };
  std::erase_if(selected.decode, other);
  std::erase_if(selected.cascade, other);
  std::erase_if(selected.merge, other);
  return selected;
}

} // namespace assay::bench
