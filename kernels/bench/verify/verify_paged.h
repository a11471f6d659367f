// SPDX-License-Identifier: Apache-2.0
// A timed call of paged attention: its outputs, and rows of it for an oracle.
#pragma once

#include "kernels/bench/verify/verify_outputs.h"

#include <memory>

namespace assay::bench {

/// A call whose outputs are as CheckedOutputs says.
struct TimedCall {
  std::string kernel;              // name in the kernel table
  assay_paged_params params;       // pointers as the kernel takes them
  std::vector<int32_t> seq_lens;   // copies of what params.kv points to
  std::vector<int32_t> page_table; // [batch, page_table_stride]
  std::function<void()> run;       // returns when the outputs are there
};

/// One request and one kv head of a call, on the host, as a call of its own: batch 1, one kv head,
/// the keys in token order in one page, the outputs of the call judged.
struct SampledRows {
  int request = 0, kv_head = 0; // of the call
  assay_paged_params params{};  // into the buffers below
  std::vector<std::byte> q, k, v, o;
  std::vector<float> lse, k_scale, v_scale, slopes, sinks;
  int32_t len = 0, page = 0;
};

/// Judges sampled rows of a call and adds to the verification.
using PagedJudge = std::function<void(
    const TimedCall &, const std::vector<std::unique_ptr<SampledRows>> &, Verification &)>;

/// Checks every element of the outputs; `judge` sees the sampled rows.
Verification verify_call(const TimedCall &call, const Memory &memory, const PagedJudge &judge);

} // namespace assay::bench
