// SPDX-License-Identifier: Apache-2.0
#include "kernels/simt/ready_set.h"

#include <algorithm>

namespace assay::simt {

uint32_t ReadySet::take_by_rank(Order order, ScheduleRandom &random) {
  const auto ready_lanes = [this](uint32_t warp) {
    return static_cast<uint32_t>(words_[warp / 2] >> (warp % 2 * 32));
  };
  uint32_t least = ~0u;
  for (uint32_t warp = 0; warp < rank_.size(); ++warp)
    if (ready_lanes(warp) != 0) least = std::min(least, rank_[warp]);
  ReadySet first;
  for (uint32_t warp = 0; warp < rank_.size(); ++warp)
    if (ready_lanes(warp) != 0 && rank_[warp] == least) first.insert_lanes(warp, ready_lanes(warp));
  const uint32_t thread = first.take_in_order(order, random);
  words_[thread / 64] &= ~(uint64_t{1} << (thread % 64));
  if (words_[thread / 64] == 0) summary_ &= ~(1u << thread / 64);
  return thread;
}

} // namespace assay::simt
