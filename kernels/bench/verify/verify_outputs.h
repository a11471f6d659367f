// SPDX-License-Identifier: Apache-2.0
// Are the outputs that were timed right? Looks at every element that a call of any family writes,
// and copies some rows with all that an oracle needs to judge them (verify_paged.h and its
// neighbours). Knows neither the oracle nor the device: both come as functions.
#pragma once

#include "kernels/abi/assay.h"

#include <cstddef>
#include <cstdint>
#include <functional>
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

  /// `bytes` at `from`.
  std::vector<std::byte> bytes_at(const void *from, size_t bytes) const;
};

/// What was judged, and a line for everything found wrong.
struct Verification {
  uint64_t rows = 0;    ///< (request, query token, query head) in every tier, on the host
  uint64_t outputs = 0; ///< O and LSE of all rows, on the device
  double device_ms = 0; ///< what that took there
  std::vector<std::string> findings;
};

/// What a row of the outputs must look like.
enum class RowIs : uint8_t {
  kFinite,      // o and lse finite
  kEmpty,       // no key: o 0, lse -inf
  kEmptyButSink // no key but a sink: o 0, lse finite
};

/// The outputs of a call: dense, between bands. Its inputs are finite, and small enough that its
/// outputs are.
struct CheckedOutputs {
  assay_dtype dtype; // type of o: ASSAY_FP16 or ASSAY_BF16
  int64_t rows;
  int32_t head_dim;
  void *o;    // [rows, head_dim]
  float *lse; // [rows]
  void *workspace;
  uint64_t workspace_bytes;
  std::function<void()> run; // returns when the outputs are there
  std::function<std::string(int64_t row)> row_name;
  std::function<RowIs(int64_t row)> row_is;
};

/// What the call wrote, on the host.
struct Outputs {
  std::vector<std::byte> o_banded, lse_banded;

  const uint16_t *o() const {
    return reinterpret_cast<const uint16_t *>(o_banded.data() + kBandBytes);
  }
  const float *lse() const {
    return reinterpret_cast<const float *>(lse_banded.data() + kBandBytes);
  }
};

/// Runs the call twice with NaN in its outputs and workspace. Every element must be written, what
/// `row_is` says and the same bits both times, and nothing around the outputs may change. Returns
/// what the first run wrote.
Outputs check_outputs(const CheckedOutputs &call, const Memory &memory, Verification &out);

/// Requests worth judging: the first, last, longest, shortest that is not empty, two others.
std::vector<int> sample_requests(const std::vector<int32_t> &seq_lens);

/// The kv heads of a request that are judged: two neighbours, others for each request.
std::vector<int> sample_heads(int request, int num_heads);

} // namespace assay::bench
