// SPDX-License-Identifier: Apache-2.0
// Tuning of merge_states, as data.
#pragma once

#include "kernels/plan/split_plan.h"

#include <cstdint>

namespace assay {

/// Threads of a block, and where a row has more workers than fit in it.
inline constexpr int kMergeStatesThreads = 256, kManyMergeStatesThreads = 512;
/// Up to which every thread weighs all states itself (merge_few_states.cuh).
inline constexpr int kMostFewStates = 4;

/// Workers that share the states of a (row, head): eight states each, one round of loads, if there
/// are more than 16; never more than a block has.
ASSAY_PLAN_FUNCTION int merge_workers(int64_t num_states, int lanes) {
  if (num_states <= 16) return 1;
  int workers = 4;
  while (workers < kManyMergeStatesThreads / lanes && num_states > 8 * workers)
    workers *= 2;
  return workers;
}

} // namespace assay
