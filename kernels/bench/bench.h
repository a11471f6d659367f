// SPDX-License-Identifier: Apache-2.0
// Measures decode kernels on the current CUDA device against a streaming read of the same bytes.
//
// Method: a CUDA graph holds one launch per page set; the sets together are several times the L2,
// so every launch finds its KV cold. The graph is replayed `replays` times and the median replay
// divided by its launches. The floor kernel reads the same bytes of the same sets in the same way;
// the best of a few block counts is the floor. Planning is timed apart: one plan serves every layer
// of a step. Every launch is timed twice: after the one before it has ended, and with early_start,
// overlapping it as far as assay.h allows.
#pragma once

#include "kernels/bench/cells.h"
#include "kernels/bench/verify.h"

#include <functional>
#include <map>
#include <string>

namespace assay::bench {

struct Options {
  int replays = 9;
  uint64_t max_pool_bytes = 100ull << 30;
  Judge judge; // looks at the outputs after the timing; empty: nobody does
};

/// Microseconds a launch in a row of launches: each after the one before, and each started early.
struct Timing {
  double us = 0, early_us = 0;
};

struct CellResult {
  Cell cell;
  uint64_t bytes = 0;
  double plan_us = 0;
  Timing floor;
  std::map<std::string, Timing> kernels;        // "paged_attention_v2" -> its timing
  std::map<std::string, Verification> verified; // by kernel; empty without a judge
  std::string error;                            // not empty: the cell did not run
};

struct DeviceInfo {
  std::string name, driver;
  int multiprocessors = 0;
  uint64_t l2_bytes = 0;
};

/// False with `error` set when no device answers.
bool device_info(DeviceInfo &info, std::string &error);

/// Runs one cell: floor, v1 and v2.
CellResult run_cell(const Cell &cell, const Options &options);

} // namespace assay::bench
