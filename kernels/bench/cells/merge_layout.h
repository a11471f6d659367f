// SPDX-License-Identifier: Apache-2.0
// Where the arrays of a merge cell's calls lie, on whatever machine.
#pragma once

#include "kernels/bench/cells/merge_cells.h"
#include "kernels/bench/verify/verify_merge.h"

namespace assay::bench {

/// Inputs of a call in one piece: merge_state O and LSE of one state, then of the other,
/// merge_states all O, then all LSE. Outputs in another: O and LSE between bands.
class MergeLayout {
public:
  explicit MergeLayout(const MergeCell &cell);

  uint64_t in_bytes() const { return read_bytes(cell_); }
  uint64_t out_bytes() const;

  /// The call over these two; `run` is left to the caller.
  TimedMerge call(assay_target target, const void *in, void *out) const;

private:
  MergeCell cell_;
};

} // namespace assay::bench
