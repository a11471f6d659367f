// SPDX-License-Identifier: Apache-2.0
// Tuning of merge_states, as data.
#pragma once

#include <cstdint>

namespace assay {

inline constexpr int kMergeStatesThreads = 256;

/// Lanes that share a (row, head): one for every eight components, up to a warp.
constexpr int merge_lanes(int head_dim) { return head_dim <= 64 ? 8 : head_dim <= 128 ? 16 : 32; }

/// Workers that share the states of a (row, head): eight states each, one round of loads, if there
/// are so many; never more than a block has.
constexpr int merge_workers(int64_t num_states, int lanes) {
  int workers = 1;
  while (workers < kMergeStatesThreads / lanes && num_states > 16 * workers)
    workers *= 2;
  return workers;
}

} // namespace assay
