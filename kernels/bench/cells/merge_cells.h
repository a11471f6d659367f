// SPDX-License-Identifier: Apache-2.0
// Cells of the merges of attention states.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace assay::bench {

enum class MergeOp : uint8_t { kState, kStates };
inline constexpr int kMergeOps = 2;
/// The name of the operation, which is also that of the kernel.
const char *name_of(MergeOp op);

/// O is bf16.
struct MergeCell {
  std::string name;
  MergeOp op;
  int rows;
  int states; // states of each row: 2 with kState
  int num_heads, head_dim;
};

const std::vector<MergeCell> &standard_merge_cells();

/// O and LSE of all states.
uint64_t read_bytes(const MergeCell &cell);
/// O and LSE of all rows.
uint64_t written_bytes(const MergeCell &cell);

} // namespace assay::bench
