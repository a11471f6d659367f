// SPDX-License-Identifier: Apache-2.0
// Tuning of merge_states, as data.
#pragma once

#include "kernels/plan/split_plan.h"

#include <cstdint>

namespace assay {

/// Up to which every thread weighs all states itself (merge_few_states.cuh), and up to which a
/// worker has a row for itself (merge_states.cuh).
inline constexpr int kMaxFewStates = 4, kMaxStatesOfOne = 16;

/// Threads of a block of merge_few_states, of merge_states, and the most of merge_many_states.
inline constexpr int kFewStatesThreads = 256, kMergeStatesThreads = 128, kManyStatesThreads = 1024;

/// Workers that share the states of a (row, head): eight states each, if there are more than
/// kMaxStatesOfOne.
inline constexpr int kMaxWorkers = 64;
ASSAY_HOST_DEVICE int merge_workers(int64_t num_states, int lanes) {
  if (num_states <= kMaxStatesOfOne) return 1;
  int workers = 4;
  while (workers < kMaxWorkers && workers * lanes < kManyStatesThreads && num_states > 8 * workers)
    workers *= 2;
  return workers;
}

} // namespace assay
