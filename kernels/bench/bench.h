// SPDX-License-Identifier: Apache-2.0
// Measures kernels on the current CUDA device against what their bytes and products must take.
//
// Method: a CUDA graph holds one call per set of a cell's memory; the sets together are several
// times the L2, so every call finds its keys or states cold. The graph is replayed `replays` times
// and the median replay divided by its calls. The floor kernel reads the same bytes of the same
// sets in the same way; the best of a few shapes is the floor. Merges are also held against a plain
// kernel that reads and writes what they do, cascades against their products. Planning is timed
// apart: one plan serves every layer of a step. Every decode call is timed twice: after the one
// before it has ended, and with enable_pdl, overlapping it as far as assay.h allows. What a call
// costs the host is timed over rows of 200 of them; waits between the rows are left out.
#pragma once

#include "kernels/bench/cells/cell_set.h"
#include "kernels/bench/result.h"
#include "kernels/bench/verify/verify_cascade.h"
#include "kernels/bench/verify/verify_merge.h"
#include "kernels/bench/verify/verify_paged.h"

namespace assay::bench {

struct Options {
  int replays = 9;
  uint64_t max_pool_bytes = 100ull << 30;
  std::vector<int> tree_splits; // also run tree_attention on cascades with these num_splits
  bool host_only = false;       // what calls cost the host, and nothing of the device
  Judge judge;                  // looks at the outputs after the timing; empty: nobody does
};

struct DeviceInfo {
  std::string name, driver;
  int multiprocessors = 0;
  uint64_t l2_bytes = 0;
};

/// False with `error` set when no device answers.
bool device_info(DeviceInfo &info, std::string &error);

/// Runs one cell: its floors, then v1 and v2, or cascade_attention, or one of the merges.
CellResult run_cell(const Cell &cell, const Options &options);
CellResult run_cell(const CascadeCell &cell, const Options &options);
CellResult run_cell(const MergeCell &cell, const Options &options);

/// Microseconds of a launch in a row of launches of a kernel that does nothing. May throw.
double empty_launch_us(const Options &options);

/// Host microseconds of such a launch, timed and launched like the kernels' own. May throw.
double empty_launch_host_us();

} // namespace assay::bench
