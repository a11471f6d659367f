// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <bit>
#include <cstdint>

#include "kernels/simt/launch.h"
#include "kernels/simt/schedule.h"

namespace assay::simt {

// The set of runnable threads of a block. The lowest, the highest and a random one are found in
// constant time, while no warp is held back.
class ReadySet {
public:
  void clear() { *this = {}; }
  bool empty() const { return summary_ == 0; }
  bool contains(uint32_t thread) const { return (words_[thread / 64] >> (thread % 64)) & 1; }
  void insert(uint32_t thread) { insert_word(thread / 64, uint64_t{1} << (thread % 64)); }
  void insert_lanes(uint32_t warp, uint32_t lanes) {
    insert_word(warp / 2, static_cast<uint64_t>(lanes) << (warp % 2 * 32));
  }
  void insert_word(uint32_t word, uint64_t bits);
  uint32_t take(Order order, ScheduleRandom &random); // not empty
  uint32_t take_uniformly(ScheduleRandom &random);    // likewise, in linear time
  // Holds a warp back: from now on its threads are taken only where no other thread is ready. Warps
  // that were held back earlier go before it.
  void hold(uint32_t warp) { rank_[warp] = ++holds_; }

private:
  uint32_t take_in_order(Order order, ScheduleRandom &random);
  uint32_t take_by_rank(Order order, ScheduleRandom &random);

  std::array<uint64_t, kMaxBlockThreads / 64> words_{};
  uint32_t summary_ = 0; // bit w: words_[w] != 0
  uint32_t holds_ = 0;
  std::array<uint32_t, kMaxBlockThreads / 32>
      rank_{}; // 0: not held back; else the higher the later
};

inline void ReadySet::insert_word(uint32_t word, uint64_t bits) {
  words_[word] |= bits;
  if (bits) summary_ |= 1u << word;
}

inline uint32_t ReadySet::take(Order order, ScheduleRandom &random) {
  if (holds_ != 0) [[unlikely]]
    return take_by_rank(order, random);
  return take_in_order(order, random);
}

inline uint32_t ReadySet::take_in_order(Order order, ScheduleRandom &random) {
  uint32_t word, bit;
  if (order == Order::kAscending) {
    word = static_cast<uint32_t>(std::countr_zero(summary_));
    bit = static_cast<uint32_t>(std::countr_zero(words_[word]));
  } else if (order == Order::kDescending) {
    word = 31 - static_cast<uint32_t>(std::countl_zero(summary_));
    bit = 63 - static_cast<uint32_t>(std::countl_zero(words_[word]));
  } else {
    // Takes the first ready thread at or behind a random position. That is not uniform, but every
    // thread can be taken.
    const uint64_t draw = random.next();
    const uint32_t from_word = draw % 32, from_bit = draw >> 58;
    word =
        static_cast<uint32_t>(std::countr_zero(std::rotr(summary_, static_cast<int>(from_word))));
    word = (word + from_word) % 32;
    bit = static_cast<uint32_t>(
        std::countr_zero(std::rotr(words_[word], static_cast<int>(from_bit))));
    bit = (bit + from_bit) % 64;
  }
  words_[word] &= ~(uint64_t{1} << bit);
  if (words_[word] == 0) summary_ &= ~(1u << word);
  return word * 64 + bit;
}

} // namespace assay::simt
