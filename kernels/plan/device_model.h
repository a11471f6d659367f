// SPDX-License-Identifier: Apache-2.0
// What the cost models know of a device, all in one place.
#pragma once

#include <cstdint>

namespace assay {

/// Measured on an H200; SPEED.md and journal.md in kernels/bench/results have the
/// runs. Times are in us. Where a model counts in bytes, they are the bytes that the memory reads
/// in the time that something takes: such models compare integers, and the host and the device
/// then choose alike.
struct DeviceModel {
  // Decode: paged_attention_v1 against paged_attention_v2 (kernels/decode/kernel_choice.h).
  double bandwidth = 4.54e6 * 0.96; ///< bytes per us of a long batch; a plain read has 4.54 TB/s
  double block_rate = 42e3; ///< bytes per us of one v1 block alone: 8k keys of d 128 in 85 (fp8 52)
  /// v1 blocks that reach the full bandwidth: 128 of them reach 0.92 of it (134 us; v2 125). With
  /// head_dim 256, whose rings are twice as large, half as many reach it.
  double busy_blocks = 139;
  double v1_fixed = 3.0; ///< launch, first loads, the merge of a block's warps
  double v2_fixed = 4.0; ///< as for v1, with the loads of the plan and the merge of splits
  /// The part of what the longest row takes beyond the mean that v1 waits for: its blocks start in
  /// the order of the batch, so a long row may start late.
  double late_start = 0.5;

  // Sm90Core: a block multiplies a tile of keys with 128 rows in 2.2 us (500 TFLOP/s on all SMs).
  int64_t tile_bytes = 9'000'000;      ///< in the time of a tile
  int64_t fp8_tile_bytes = 14'000'000; ///< cost of an fp8 tile, which is widened: 3.1 us
  int32_t block_tiles = 2;             ///< what a block does besides its tiles takes as long as two

  // Prefix trees (kernels/plan/prefix_tree.h).
  int64_t item_bytes = 140'000; ///< one block's part of the memory, in the 4 us of an item
  int64_t join_bytes = 500'000; ///< in 0.1 us: a block adds partials to the state of one row tile
  int64_t round_bytes = 9'000'000; ///< in 2 us: eight splits of a row, loaded together
  int64_t min_gain = 45'000'000;   ///< in the 10 us of one more kernel
};
inline constexpr DeviceModel kH200{};

} // namespace assay
