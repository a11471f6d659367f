// SPDX-License-Identifier: Apache-2.0
#include "kernels/common/kv_tile.cuh"

#include <gtest/gtest.h>

#include <algorithm>
#include <set>

namespace assay {
namespace {

template <int kRowBytes>
void check_layout() {
  using Layout = n_simt::KvLayout<kRowBytes>;
  constexpr int kTokensPerPass = std::max(1, 32 / Layout::kChunks), kTokens = 64;
  std::set<int> used;
  for (int token = 0; token < kTokens; ++token)
    for (int chunk = 0; chunk < Layout::kChunks; ++chunk) {
      const int index = Layout::index(token, chunk);
      EXPECT_TRUE(index >= 0 && index < kTokens * Layout::kChunks);
      EXPECT_TRUE(used.insert(index).second) << token << " " << chunk;
      const int first = token % kTokensPerPass;
      EXPECT_EQ(Layout::index_from(Layout::index(first, chunk), token - first), index);
    }
  // The eight rows of one ldmatrix phase lie in eight different groups of four banks.
  for (int row = 0; row < kTokens; row += 8)
    for (int chunk = 0; chunk < Layout::kChunks; ++chunk) {
      std::set<int> groups;
      for (int i = 0; i < 8; ++i)
        groups.insert(Layout::index(row + i, chunk) % 8);
      EXPECT_EQ(groups.size(), 8u) << kRowBytes << " " << row << " " << chunk;
    }
}

TEST(KvLayout, every_chunk_has_a_place_without_bank_conflicts) {
  check_layout<64>();
  check_layout<128>();
  check_layout<256>();
  check_layout<512>();
}

} // namespace
} // namespace assay
