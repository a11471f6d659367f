// SPDX-License-Identifier: Apache-2.0
// What the runs of all kinds of cells share.
#pragma once

#include "kernels/bench/bench.h"
#include "kernels/bench/device.cuh"

namespace assay::bench {

/// Throws when a call of the ABI was refused.
void check_status(assay_status status, const char *what);

/// Sets of a cell's memory: three times the L2 between two uses of one, and at least two.
int set_count(uint64_t bytes, uint64_t l2_bytes, const Options &options);

/// Consecutive sets of `bytes` each, for the floor to read: launch i reads set i % sets.
struct FloorSets {
  const char *data;
  uint64_t bytes; // bytes of a set
  int sets;
};

/// The best of the floor's shapes.
double read_floor_us(const FloorSets &sets, const Stream &stream, int multiprocessors, int replays,
                     bool enable_pdl);

Memory device_memory();

/// The result that `run(result, device)` fills; what it throws is the error.
template <class Run>
CellResult guarded(CellKind kind, const std::string &cell, const char *kv_dtype,
                   const Options &options, Run run) {
  CellResult result;
  result.kind = options.host_only ? CellKind::kHost : kind;
  result.cell = cell;
  result.kv_dtype = kv_dtype;
  try {
    DeviceInfo device;
    if (device_info(device, result.error)) run(result, device);
  } catch (const std::exception &e) {
    result.error = e.what();
  }
  return result;
}

} // namespace assay::bench
