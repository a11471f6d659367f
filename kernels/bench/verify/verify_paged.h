// SPDX-License-Identifier: Apache-2.0
// A timed call of paged attention: its outputs, and which rows an oracle judges.
#pragma once

#include "kernels/bench/verify/judge.h"

namespace assay::bench {

/// A call whose outputs are as CheckedOutputs says.
struct TimedCall {
  std::string kernel;              // name in the kernel table
  assay_paged_params params;       // pointers as the kernel takes them
  std::vector<int32_t> seq_lens;   // copies of what params.kv points to
  std::vector<int32_t> page_table; // [batch, page_table_stride]
  std::function<void()> run;       // returns when the outputs are there
};

/// Checks every element of the outputs; `judge` sees the sampled rows.
Verification verify_call(const TimedCall &call, const Memory &memory, const Judge &judge);

} // namespace assay::bench
