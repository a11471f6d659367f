// SPDX-License-Identifier: Apache-2.0
// Tuning of merge_states, as data.
#pragma once

#include "kernels/plan/split_plan.h"

#include <cstdint>

namespace assay {

/// With up to kMaxFewStates states every thread weighs all of them (merge_few_states.cuh). With up
/// to kMaxStatesOfOne one worker has a row for itself (merge_states.cuh).
inline constexpr int kMaxFewStates = 4, kMaxStatesOfOne = 16;

/// Threads of a block of merge_few_states, of a block of merge_states, and at most of one of
/// merge_many_states.
inline constexpr int kFewStatesThreads = 256, kMergeStatesThreads = 128, kManyStatesThreads = 1024;

/// Workers that share the states of a (row, head). With more than kMaxStatesOfOne states a worker
/// has about eight, unless there would be too many workers.
inline constexpr int kMaxWorkers = 64;
ASSAY_HOST_DEVICE int merge_workers(int64_t num_states, int lanes) {
  if (num_states <= kMaxStatesOfOne) return 1;
  int workers = 4;
  while (workers < kMaxWorkers && workers * lanes < kManyStatesThreads && num_states > 8 * workers)
    workers *= 2;
  return workers;
}

} // namespace assay
