// SPDX-License-Identifier: Apache-2.0
#include "kernels/simt/ready_set.h"

#include <algorithm>

namespace assay::simt {

uint32_t ReadySet::take_uniformly(ScheduleRandom &random) {
  uint32_t count = 0;
  for (const uint64_t word : words_)
    count += static_cast<uint32_t>(std::popcount(word));
  uint32_t nth = random.below(count), word = 0;
  for (; nth >= static_cast<uint32_t>(std::popcount(words_[word])); ++word)
    nth -= static_cast<uint32_t>(std::popcount(words_[word]));
  uint64_t bits = words_[word];
  for (; nth != 0; --nth)
    bits &= bits - 1;
  const uint32_t bit = static_cast<uint32_t>(std::countr_zero(bits));
  words_[word] &= ~(uint64_t{1} << bit);
  if (words_[word] == 0) summary_ &= ~(1u << word);
  return word * 64 + bit;
}

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
