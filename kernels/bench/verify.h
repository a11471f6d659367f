// SPDX-License-Identifier: Apache-2.0
// Are the outputs that were timed right? Looks at every element of a call's outputs, and copies
// some rows with all that an oracle needs to judge them. Knows neither the oracle nor the device:
// both come as functions.
#pragma once

#include "kernels/abi/assay.h"

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

namespace assay::bench {

/// Bytes in front of and behind o and lse that no call may write.
inline constexpr size_t kBandBytes = 256;

/// Access to the memory of a call: the device's, or the host's in tests.
struct Memory {
  /// Copies `rows` rows of `row_bytes` each, `pitch` bytes apart, to consecutive host memory.
  std::function<void(void *to, const void *from, size_t row_bytes, size_t pitch, size_t rows)> read;
  std::function<void(void *at, unsigned char value, size_t bytes)> fill;
};

/// A call whose outputs are dense and lie between bands. Its inputs are finite, and small enough
/// that its outputs are.
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

/// Rows (request, query token, query head) judged, and a line for everything found wrong.
struct Verification {
  uint64_t rows = 0;
  std::vector<std::string> findings;
};

/// Judges sampled rows of a call and adds to the verification.
using Judge = std::function<void(
    const TimedCall &, const std::vector<std::unique_ptr<SampledRows>> &, Verification &)>;

/// Runs the call twice with NaN in its outputs and workspace. Every element must be written, finite
/// (an empty row: 0 and -inf) and the same bits both times, nothing around the outputs may change,
/// and `judge` sees the sampled rows.
Verification verify_call(const TimedCall &call, const Memory &memory, const Judge &judge);

/// Requests worth judging: the first, last, longest, shortest that is not empty, two others.
std::vector<int> sample_requests(const std::vector<int32_t> &seq_lens);

} // namespace assay::bench
