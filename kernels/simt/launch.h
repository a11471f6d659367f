// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>

#include "kernels/simt/function_ref.h"
#include "kernels/simt/stream.h"

namespace assay::simt {

struct LaunchConfig {
  uint32_t grid_x = 1, grid_y = 1, grid_z = 1;
  uint32_t block = 1;      // threads, 1 to kMaxBlockThreads
  size_t shared_bytes = 0; // dynamic shared memory of a block, up to kMaxSharedBytes
  uint32_t cluster = 1;    // blocks of a cluster, neighbours along x: see kMaxClusterBlocks
  bool enable_pdl = false; // the kernel in front may still run: see Memory::mark_late
};

constexpr uint32_t kMaxBlockThreads = 1024;
constexpr size_t kMaxSharedBytes = 227 * 1024;
// A cluster of several blocks has at most kMaxBlockThreads threads in all, and its blocks whole
// warpgroups; grid_x is a multiple of it. Its blocks run at once.
constexpr uint32_t kMaxClusterBlocks = 8;

enum class LaunchStatus : uint8_t {
  kOk,
  kHazard, ///< the run stopped at a hazard, which is the last entry of Stream::hazards
};

// Runs `thread_body` once per thread of every block, blocks one after the other. Returns when all
// threads have finished, or at the first hazard. With a null stream the default schedule is used,
// global accesses are not checked, and a hazard shows in the status alone. At a hazard the thread
// that found it is unwound and the others are abandoned where they stand: device code must own
// nothing that needs a destructor.
LaunchStatus launch(Stream *stream, const LaunchConfig &config, FunctionRef<void()> thread_body);

} // namespace assay::simt
