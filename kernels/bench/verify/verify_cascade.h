// SPDX-License-Identifier: Apache-2.0
// A timed call of cascade attention: its outputs, and which rows an oracle judges.
#pragma once

#include "kernels/bench/verify/judge.h"

namespace assay::bench {

/// A call whose outputs are as CheckedOutputs says.
struct TimedCascade {
  std::string kernel;          // name in the kernel table
  assay_cascade_params params; // pointers as the kernel takes them; levels as below, of the kernel
  /// As params.levels, with page tables, lengths and offsets on the host; k and v as the kernel
  /// takes them.
  std::vector<assay_cascade_level> levels;
  std::function<void()> run; // returns when the outputs are there
};

/// Checks every element of the outputs; `judge` sees the sampled rows.
Verification verify_cascade(const TimedCascade &call, const Memory &memory, const Judge &judge);

} // namespace assay::bench
