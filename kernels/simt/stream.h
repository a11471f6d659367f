// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <vector>

#include "kernels/simt/counters.h"
#include "kernels/simt/hazard.h"
#include "kernels/simt/memory.h"
#include "kernels/simt/number_table.h"
#include "kernels/simt/schedule.h"

namespace assay::simt {

// The simt counterpart of a CUDA stream, and what the `stream` member of a params struct points to
// on this target: the memory that kernels may touch, the schedule they run under, and what came of
// it. Launches are synchronous. Different Streams may be used on different host threads at once.
struct Stream {
  Memory memory;
  Schedule schedule;
  Counters counters;
  NumberTable numbers;         // of kernels whose words are handles; kept between launches
  std::vector<Hazard> hazards; // appended to by launch(); at most one per launch
  bool strict_global = true;   // every global access must hit a registered buffer
};

} // namespace assay::simt
