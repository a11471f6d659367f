// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

#include "properties/case/hash.h"

namespace assay {

/// Integers that depend on the seed of a draw and their number alone.
class Rng {
public:
  explicit Rng(uint64_t seed) : seed_(seed) {}
  int upto(int most) { return static_cast<int>(hash_values(seed_, ++count_) % (most + 1)); }
  int between(int low, int high) { return low + upto(high - low); }

private:
  uint64_t seed_;
  int count_ = 0;
};

} // namespace assay
