// SPDX-License-Identifier: Apache-2.0
// A timed call of cascade attention: its outputs, and rows of it for an oracle.
#pragma once

#include "kernels/bench/verify/verify_outputs.h"

#include <memory>

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

/// One level of sampled rows: the keys of one segment in token order, in one page.
struct SampledLevel {
  std::vector<std::byte> k, v;
  int32_t len = 0, page = 0;
  int32_t indptr[2] = {0, 1};
};

/// One request and one kv head of a call, on the host, as a call of its own: batch 1, one kv head,
/// a segment a level.
struct SampledCascadeRows {
  int request = 0, kv_head = 0;  // of the call
  assay_cascade_params params{}; // into the buffers below
  std::vector<std::byte> q, o;
  std::vector<float> lse;
  std::vector<SampledLevel> segments;
  std::vector<assay_cascade_level> levels;
};

using CascadeJudge =
    std::function<void(const TimedCascade &,
                       const std::vector<std::unique_ptr<SampledCascadeRows>> &, Verification &)>;

/// Checks every element of the outputs; `judge` sees the sampled rows.
Verification verify_cascade(const TimedCascade &call, const Memory &memory,
                            const CascadeJudge &judge);

} // namespace assay::bench
