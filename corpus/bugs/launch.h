// SPDX-License-Identifier: Apache-2.0
// How the kernels of this folder start on the executor.
#pragma once

#include <cstddef>
#include <cstdint>

#include "kernels/abi/plugin.h"
#include "kernels/simt/launch.h"

namespace assay::bugs {

struct Grid {
  int64_t blocks;
  uint32_t threads;
  size_t shared_bytes = 0;
  bool enable_pdl = false;
};

/// Runs `body` in every thread; the stream has the report of a hazard.
template <class Body>
assay_status launch(void *stream, const Grid &grid, const Body &body) {
  if (grid.blocks == 0) return ASSAY_OK;
  const simt::LaunchConfig config{.grid_x = static_cast<uint32_t>(grid.blocks),
                                  .block = grid.threads,
                                  .shared_bytes = grid.shared_bytes,
                                  .enable_pdl = grid.enable_pdl};
  const auto status = simt::launch(static_cast<simt::Stream *>(stream), config, body);
  return status == simt::LaunchStatus::kOk ? ASSAY_OK : assay_status{ASSAY_HAZARD};
}

} // namespace assay::bugs
