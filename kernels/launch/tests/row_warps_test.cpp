// SPDX-License-Identifier: Apache-2.0
// How many warps of paged_attention_v1 share a row: whole waves, or a block a row.
#include "kernels/abi/plugin.h"
#include "kernels/decode/decode_policy.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <vector>

namespace assay {
namespace {

constexpr int kH200 = 132; // multiprocessors: 1056 warps a wave, 528 with head_dim 256

int warps(int64_t rows, int head_dim = 128) { return v1_row_warps(rows, true, head_dim, 2, kH200); }

TEST(RowWarps, fewest_that_fill_nine_tenths_of_every_wave) {
  EXPECT_EQ(warps(256), 4);  // one wave of four each, a quarter of one with one each
  EXPECT_EQ(warps(512), 2);  // 0.97 of a wave
  EXPECT_EQ(warps(950), 4);  // 0.8996
  EXPECT_EQ(warps(951), 1);  // 0.9006
  EXPECT_EQ(warps(1056), 1); // exactly one
  EXPECT_EQ(warps(1100), 4); // the second wave would be empty but for 44 warps
  EXPECT_EQ(warps(2048), 1);
  EXPECT_EQ(warps(512, 256), 1);
}

TEST(RowWarps, without_the_hint_or_a_device_a_block_a_row) {
  EXPECT_EQ(v1_row_warps(1056, false, 128, 2, kH200), kV1Warps);
  EXPECT_EQ(v1_row_warps(1056, true, 128, 2, 0), kV1Warps);
}

/// States of a row that the kernel declares for a batch of so many rows on the executor.
int declared_states(int rows, int even_lengths) {
  const std::vector<int32_t> lens(rows, 200);
  assay_paged_params p = {};
  p.struct_size = sizeof p;
  p.dtype = p.kv_dtype = ASSAY_BF16;
  p.batch = p.kv.rows = rows;
  p.q_len = p.num_qo_heads = p.num_kv_heads = 1;
  p.head_dim = 64;
  p.even_lengths = even_lengths;
  p.kv.seq_lens = lens.data();
  const assay_plugin &plugin = *assay_plugin_entry(ASSAY_ABI_MAJOR);
  std::vector<assay_key_tile> tiles(64);
  int32_t count = 0, states = 0;
  EXPECT_EQ(plugin.kernels[0].key_order(&p, 0, 0, tiles.data(), 64, &count), ASSAY_OK);
  for (int i = 0; i < count; ++i)
    states = std::max(states, tiles[i].state + 1);
  return states;
}

TEST(RowWarps, key_order_follows) {
  EXPECT_EQ(declared_states(32, 1), 1); // 4 multiprocessors: 32 warps a wave
  EXPECT_EQ(declared_states(16, 1), 2);
  EXPECT_EQ(declared_states(3, 1), 4);
  EXPECT_EQ(declared_states(32, 0), 4);
}

} // namespace
} // namespace assay
