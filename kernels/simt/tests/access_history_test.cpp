// SPDX-License-Identifier: Apache-2.0
// Which readers of a word are kept where lanes of several warps come in turns.
#include "kernels/simt/access_history.h"

#include <gtest/gtest.h>

namespace assay::simt {
namespace {

constexpr uint32_t kReadingWarps = 3, kLanesOfWarp = 32;

Readers reader_of(uint32_t warp, uint32_t lane, uint32_t stamp) {
  Readers out;
  out.launch = 1;
  out.stamp = stamp;
  out.warp = static_cast<uint8_t>(warp);
  out.lanes = 1u << lane;
  return out;
}

// All lanes of all warps read, lane by lane. Those of earlier times are dropped, as who is behind
// the later read of a lane is behind its earlier ones.
TEST(AccessHistory, lanes_in_turns_are_all_kept_and_those_of_earlier_times_are_not) {
  alignas(16) uint32_t word[4] = {};
  AccessHistory history;
  history.cover(word, sizeof word);
  for (uint32_t stamp = 1; stamp <= 20; ++stamp)
    for (uint32_t lane = 0; lane < kLanesOfWarp; ++lane)
      for (uint32_t warp = 0; warp < kReadingWarps; ++warp)
        history.each(word, 16, [&](AccessHistory::Cell &cell) {
          history.add(cell, reader_of(warp, lane, stamp), 0);
        });
  uint32_t newest[kReadingWarps] = {}, kept = 0;
  history.each(word, 16, [&](const AccessHistory::Cell &cell) {
    history.each_reader(cell, [&](const Readers &readers) {
      if (readers.stamp == 20) newest[readers.warp] |= readers.lanes;
      ++kept;
    });
  });
  for (const uint32_t lanes : newest)
    EXPECT_EQ(lanes, ~0u);
  EXPECT_LE(kept, 2 * kReadingWarps);
}

} // namespace
} // namespace assay::simt
