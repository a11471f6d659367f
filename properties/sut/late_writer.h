// SPDX-License-Identifier: Apache-2.0
// The kernel in front of an early start on a device: lets its successor start at once, and writes
// what it has to write as late as it can.
#pragma once

#include <cuda_runtime_api.h>

#include <cstddef>
#include <vector>

namespace assay {

struct LateRange {
  size_t offset, bytes;
};

/// Device memory of a late writer: `bytes` at `memory`, as many at `spare`, and room for the list
/// of ranges behind it.
struct LateMemory {
  std::byte *memory, *spare;
  size_t bytes;
  static size_t total(size_t bytes, size_t ranges) {
    return 2 * bytes + ranges * sizeof(LateRange);
  }
};

/// Fills the ranges of `memory` with 0xFF (NaN in every format), and enqueues a kernel that puts
/// them back some 20 us after it began.
cudaError_t enqueue_late_writer(const LateMemory &late, const std::vector<LateRange> &ranges,
                                cudaStream_t stream);

} // namespace assay
