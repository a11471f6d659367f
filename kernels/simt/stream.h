// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <vector>

#include "kernels/simt/counters.h"
#include "kernels/simt/hazard.h"
#include "kernels/simt/memory.h"
#include "kernels/simt/number_table.h"
#include "kernels/simt/schedule.h"

namespace assay::simt {

// What a CUDA stream is on the executor: the `stream` of a params struct points to one. It has the
// memory that kernels may touch, the schedule that they run under, and what came of their runs.
// Launches are synchronous. Several host threads may use Streams at once, each its own.
struct Stream {
  Memory memory;
  Schedule schedule;
  Counters counters;
  NumberTable numbers;         // numbers of kernels whose words are handles; kept between launches
  std::vector<Hazard> hazards; // appended to by launch(); at most one per launch
  bool strict_global = true;   // every global access must hit a registered buffer
};

} // namespace assay::simt
