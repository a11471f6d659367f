// SPDX-License-Identifier: Apache-2.0
// v1 or v2: a model of what bytes, launch and merge cost.
#pragma once

#include "kernels/plan/device_model.h"

#include <algorithm>
#include <cstdint>

namespace assay {

/// `row_bytes`: K and V of one token of one kv head.
struct DecodeLoad {
  int64_t batch, total_tokens, max_seq_len;
  int64_t kv_heads, row_bytes;
  int head_dim;
};

/// What even_lengths promises: a wave of warps with a row each then ends about together.
constexpr bool lengths_are_even(const DecodeLoad &load) {
  return 4 * load.batch * load.max_seq_len <= 5 * load.total_tokens;
}

constexpr double v1_cost(const DecodeLoad &load, const DeviceModel &m = kH200) {
  const double bytes = static_cast<double>(load.total_tokens * load.kv_heads * load.row_bytes);
  const double longest = static_cast<double>(load.max_seq_len * load.row_bytes);
  const double mean =
      static_cast<double>(load.total_tokens * load.row_bytes) / static_cast<double>(load.batch);
  const double blocks =
      static_cast<double>(load.batch * load.kv_heads) * (load.head_dim == 256 ? 2 : 1);
  const double bandwidth = m.bandwidth * std::min(1.0, blocks / m.busy_blocks);
  return m.v1_fixed + std::max(bytes / bandwidth, longest / m.block_rate) +
         m.late_start * (longest - mean) / m.block_rate;
}

constexpr double v2_cost(const DecodeLoad &load, const DeviceModel &m = kH200) {
  return m.v2_fixed +
         static_cast<double>(load.total_tokens * load.kv_heads * load.row_bytes) / m.bandwidth;
}

} // namespace assay
