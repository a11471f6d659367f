// SPDX-License-Identifier: Apache-2.0
// Which tokens of a request a list of keys holds, where a cache is cut along the sequence.
#pragma once

#include <cstdint>

#include "oracle/exact/host_device.h"

namespace assay::oracle {

/** Token t if (t / interleave) mod ranks is `rank`, in their order. One rank: all of them. */
struct Shard {
  int32_t ranks = 1, rank = 0, interleave = 1;

  /** The position in its request of key `index` of the list. */
  ORACLE_HOST_DEVICE int64_t position(int64_t index) const {
    if (ranks == 1) return index; // most calls, and divisions are slow on a GPU
    const int64_t turn = index / interleave, slot = index % interleave;
    return (turn * ranks + rank) * interleave + slot;
  }
  /** Keys of the list at positions below `tokens`, which is at least 0. */
  ORACLE_HOST_DEVICE int64_t keys(int64_t tokens) const {
    const int64_t chunks = tokens / interleave; // whole ones of any rank; another may be begun
    const int64_t own = (chunks + ranks - 1 - rank) / ranks;
    const bool begun = chunks % ranks == rank;
    return own * interleave + (begun ? tokens % interleave : 0);
  }
};

} // namespace assay::oracle
