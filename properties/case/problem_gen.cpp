// SPDX-License-Identifier: Apache-2.0
#include "properties/case/problem_gen.h"

#include <array>
#include <bit>
#include <iterator>
#include <utility>

namespace assay {
namespace {

/// A tree of random numbers: Threefish-256 of the path to a node, under a key that is the seed.
class RandomTree {
public:
  explicit RandomTree(uint64_t seed) : key_{seed, seed, seed, seed} {}

  /// Goes to the left child, and returns the right one.
  RandomTree split() {
    RandomTree right = *this;
    append(0);
    right.append(1);
    return right;
  }
  uint64_t number() const { return encrypted()[0]; }

private:
  using Block = std::array<uint64_t, 4>;

  void append(uint64_t turn) {
    if (depth_ == 64) {
      key_ = encrypted();
      path_ = 0;
      depth_ = 0;
    }
    path_ |= turn << depth_++;
  }

  Block encrypted() const {
    constexpr int kRounds = 72;
    constexpr uint64_t kTweak[] = {13, 37, 13 ^ 37};
    constexpr std::pair<int, int> kRotations[] = {{14, 16}, {52, 57}, {23, 40}, {5, 37},
                                                  {25, 33}, {46, 12}, {58, 22}, {32, 32}};
    const uint64_t parity = 0x1bd11bdaa9fc1a22 ^ key_[0] ^ key_[1] ^ key_[2] ^ key_[3];
    const uint64_t keys[] = {key_[0], key_[1], key_[2], key_[3], parity};
    Block x{path_, 0, 0, 0};
    for (int round = 0;; ++round) {
      if (const int s = round / 4; round % 4 == 0) {
        for (int i = 0; i < 4; ++i)
          x[i] += keys[(s + i) % 5];
        x[1] += kTweak[s % 3];
        x[2] += kTweak[(s + 1) % 3];
        x[3] += static_cast<uint64_t>(s);
      }
      if (round == kRounds) return x;
      const auto &[first, second] = kRotations[round % 8];
      x[0] += x[1];
      x[1] = std::rotl(x[1], first) ^ x[0];
      x[2] += x[3];
      x[3] = std::rotl(x[3], second) ^ x[2];
      std::swap(x[1], x[3]);
    }
  }

  Block key_;
  uint64_t path_ = 0;
  int depth_ = 0;
};

/// No byte, few, or more than any case under check_limits() consumes.
size_t length_of(uint64_t number) {
  constexpr size_t kFew[] = {0, 16, 32, 48, 64, 96, 96}, kMany = 256, kInMany = 10;
  const size_t i = number % (std::size(kFew) + kInMany);
  return i < std::size(kFew) ? kFew[i] : kMany;
}

} // namespace

Bytes draw_case_bytes(uint64_t seed) {
  RandomTree length(seed);
  RandomTree at = length.split();
  Bytes bytes(length_of(length.number()));
  for (uint8_t &byte : bytes)
    byte = static_cast<uint8_t>(at.split().number());
  return bytes;
}

Problem draw_problem(const Limits &limits, Family family, uint64_t seed) {
  return decode_family(draw_case_bytes(seed), limits, family);
}

} // namespace assay
