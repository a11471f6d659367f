// SPDX-License-Identifier: Apache-2.0
// v1 or v2: a model of what bytes, launch and merge cost.
#pragma once

#include <algorithm>
#include <cstdint>

namespace assay {

/// Constants measured on an H200 (kernels/decode/README.md), in us and bytes per us.
struct DecodeCostModel {
  double bandwidth = 4.54e6 * 0.96; // what a long batch reaches, of a plain read's 4.54 TB/s
  double block_rate = 42e3;         // one v1 block alone: 8k keys of d 128, 85 us (fp8 52)
  /// v1 blocks that reach the full bandwidth; 128 of them reach 0.92 of it (134 us, v2 125). Half
  /// as many with head_dim 256, whose rings are twice as large.
  double busy_blocks = 139;
  double v1_fixed = 3.0; // launch, first loads, the block's merge
  double v2_fixed = 4.0; // the same, the plan's loads and the merge of splits
  /// Of what the longest row needs beyond the mean: v1 blocks start in batch order, so a long row
  /// may start late.
  double late_start = 0.5;
};

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

constexpr double v1_cost(const DecodeLoad &load, const DecodeCostModel &m = {}) {
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

constexpr double v2_cost(const DecodeLoad &load, const DecodeCostModel &m = {}) {
  return m.v2_fixed +
         static_cast<double>(load.total_tokens * load.kv_heads * load.row_bytes) / m.bandwidth;
}

} // namespace assay
