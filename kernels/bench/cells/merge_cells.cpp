// SPDX-License-Identifier: Apache-2.0
#include "kernels/bench/cells/merge_cells.h"

namespace assay::bench {
namespace {

/// 32 heads of 128.
MergeCell merge(MergeOp op, int rows, int states) {
  return {std::string(name_of(op)) + " " + std::to_string(rows) + "x" + std::to_string(states),
          op,
          rows,
          states,
          32,
          128};
}

} // namespace

const char *name_of(MergeOp op) { return op == MergeOp::kState ? "merge_state" : "merge_states"; }

const std::vector<MergeCell> &standard_merge_cells() {
  using Op = MergeOp;
  static const std::vector<MergeCell> kCells = {
      merge(Op::kState, 64, 2),     merge(Op::kState, 1024, 2),  merge(Op::kState, 16384, 2),
      merge(Op::kState, 65536, 2),  merge(Op::kStates, 64, 16),  merge(Op::kStates, 1024, 16),
      merge(Op::kStates, 4096, 16), merge(Op::kStates, 1000, 3), merge(Op::kStates, 16, 128),
      merge(Op::kStates, 4, 1024),
  };
  return kCells;
}

uint64_t written_bytes(const MergeCell &cell) {
  return uint64_t(cell.rows) * cell.num_heads * (cell.head_dim * sizeof(uint16_t) + sizeof(float));
}
uint64_t read_bytes(const MergeCell &cell) { return written_bytes(cell) * cell.states; }

} // namespace assay::bench
