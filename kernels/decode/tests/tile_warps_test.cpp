// SPDX-License-Identifier: Apache-2.0
// How paged_attention_v1 deals out rows: how many warps share one, and which blocks have which.
#include "kernels/abi/plugin.h"
#include "kernels/decode/v1_policy.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <random>
#include <vector>

namespace assay {
namespace {

constexpr int kH200 = 132; // multiprocessors: 1056 warps a wave, 528 with head_dim 256

int warps(int64_t rows, int head_dim = 128) {
  return v1_tile_warps(rows, true, head_dim, 2, kH200);
}

TEST(TileWarps, fewest_that_fill_nine_tenths_of_every_wave) {
  EXPECT_EQ(warps(256), 4);  // one wave of four each, a quarter of one with one each
  EXPECT_EQ(warps(512), 2);  // 0.97 of a wave
  EXPECT_EQ(warps(950), 4);  // 0.8996
  EXPECT_EQ(warps(951), 1);  // 0.9006
  EXPECT_EQ(warps(1056), 1); // exactly one
  EXPECT_EQ(warps(1100), 4); // the second wave would be empty but for 44 warps
  EXPECT_EQ(warps(2048), 1);
  EXPECT_EQ(warps(512, 256), 1);
}

TEST(TileWarps, without_the_hint_or_a_device_a_block_a_row) {
  EXPECT_EQ(v1_tile_warps(1056, false, 128, 2, kH200), kDecodeWarps);
  EXPECT_EQ(v1_tile_warps(1056, true, 128, 2, 0), kDecodeWarps);
}

/// Row tiles before block b.
int64_t tiles_before(int64_t block, uint64_t share) {
  return static_cast<int64_t>(static_cast<uint64_t>(block) * share >> 32);
}

TEST(HeadTiles, every_one_in_one_block_and_any_blocks_in_a_row_have_their_share) {
  std::mt19937_64 rng(3);
  int whole_waves = 0;
  for (int i = 0; i < 3000; ++i) {
    const int tile_warps = 1 << rng() % 3;
    const int64_t slots = rng() % 3 == 0 ? 264 : 1 + static_cast<int64_t>(rng() % 300);
    const int64_t tiles =
        i == 0 ? (int64_t{1} << 31) - 1 : 1 + static_cast<int64_t>(rng() % (i % 2 ? 1200 : 100000));
    const int64_t blocks = v1_blocks(tiles, tile_warps, slots, i % 4 != 0);
    const uint64_t share = v1_tile_share(tiles, blocks);
    ASSERT_GE(blocks * (kDecodeWarps / tile_warps), tiles);
    ASSERT_EQ(tiles_before(0, share), 0);
    ASSERT_EQ(tiles_before(blocks, share), tiles);
    whole_waves += blocks * (kDecodeWarps / tile_warps) >= tiles + kDecodeWarps / tile_warps;
    for (int64_t b = 0; b < std::min<int64_t>(blocks, 2000); ++b) {
      ASSERT_LE(tiles_before(b + 1, share) - tiles_before(b, share), kDecodeWarps / tile_warps);
      const int64_t end = b + static_cast<int64_t>(rng() % (blocks - b)) + 1;
      const double even = static_cast<double>(end - b) * tiles / blocks;
      ASSERT_LE(std::abs(tiles_before(end, share) - tiles_before(b, share) - even), 1.001);
    }
  }
  EXPECT_GT(whole_waves, 100); // blocks that a grid started late would not have
}

TEST(HeadTiles, a_grid_that_starts_early_is_whole_waves_where_little_is_missing) {
  EXPECT_EQ(v1_blocks(256, 4, 264, true), 264);
  EXPECT_EQ(v1_blocks(1024, 1, 264, true), 264);
  EXPECT_EQ(v1_blocks(2048, 1, 264, true), 528);
  EXPECT_EQ(v1_blocks(256, 4, 264, false), 256);
  EXPECT_EQ(v1_blocks(237, 4, 264, true), 237); // below nine tenths
  EXPECT_EQ(v1_blocks(256, 4, 0, true), 256);   // no device
}

/// States of a row that the kernel declares for a batch of so many rows on the executor.
int declared_states(int rows, int even_lengths) {
  const std::vector<int32_t> lens(rows, 200);
  assay_paged_params p = assay_paged_params_init();
  p.dtype = p.kv_dtype = ASSAY_BF16;
  p.batch = p.kv.rows = rows;
  p.q_len = p.num_qo_heads = p.num_kv_heads = 1;
  p.head_dim = 64;
  p.even_lengths = even_lengths;
  p.kv.seq_lens = lens.data();
  const assay_plugin &plugin = *assay_plugin_entry(ASSAY_ABI_MAJOR);
  std::vector<assay_key_tile> tiles(64);
  std::vector<int64_t> first(static_cast<size_t>(rows) + 1);
  int32_t states = 0;
  EXPECT_EQ(plugin.kernels[0].key_order(&p, tiles.data(), 64, first.data()), ASSAY_OK);
  for (int64_t i = 0; i < first[1]; ++i)
    states = std::max(states, tiles[i].state + 1);
  return states;
}

TEST(TileWarps, key_order_follows) {
  EXPECT_EQ(declared_states(32, 1), 1); // 4 multiprocessors: 32 warps a wave
  EXPECT_EQ(declared_states(16, 1), 2);
  EXPECT_EQ(declared_states(3, 1), 4);
  EXPECT_EQ(declared_states(32, 0), 4);
}

} // namespace
} // namespace assay
