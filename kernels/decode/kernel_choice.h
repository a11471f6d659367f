// SPDX-License-Identifier: Apache-2.0
// Whether v1 or v2 serves a call: a model of what bytes, launches and merges cost.
#pragma once

#include "kernels/plan/device_model.h"

#include <algorithm>
#include <cstdint>

namespace assay {

/// What the model asks of a call. `row_bytes` is K and V of one token of one kv head.
struct DecodeLoad {
  int64_t batch, total_tokens, max_seq_len;
  int64_t kv_heads, row_bytes;
  int head_dim;
};

/// Whether a call may promise even_lengths. With a request per warp a wave then ends about
/// together.
constexpr bool lengths_are_even(const DecodeLoad &load) {
  return 4 * load.batch * load.max_seq_len <= 5 * load.total_tokens;
}

/// Bytes of K and V of some tokens. No integer holds those of the largest calls.
constexpr double bytes_of(int64_t tokens, int64_t kv_heads, const DecodeLoad &load) {
  return static_cast<double>(tokens) * static_cast<double>(kv_heads) *
         static_cast<double>(load.row_bytes);
}

constexpr double v1_cost(const DecodeLoad &load, const DeviceModel &m = kH200) {
  const double bytes = bytes_of(load.total_tokens, load.kv_heads, load);
  const double longest = bytes_of(load.max_seq_len, 1, load);
  const double mean = bytes_of(load.total_tokens, 1, load) / static_cast<double>(load.batch);
  const double blocks =
      static_cast<double>(load.batch * load.kv_heads) * (load.head_dim == 256 ? 2 : 1);
  const double bandwidth = m.bandwidth * std::min(1.0, blocks / m.busy_blocks);
  return m.v1_fixed + std::max(bytes / bandwidth, longest / m.block_rate) +
         m.late_start * (longest - mean) / m.block_rate;
}

constexpr double v2_cost(const DecodeLoad &load, const DeviceModel &m = kH200) {
  return m.v2_fixed + bytes_of(load.total_tokens, load.kv_heads, load) / m.bandwidth;
}

} // namespace assay
