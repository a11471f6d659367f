// SPDX-License-Identifier: Apache-2.0
// The order of keys that a kernel declares (assay_kernel::key_order), of a whole call.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "kernels/abi/plugin.h"
#include "oracle/exact/tile_order.h"
#include "oracle/rows/rows.h"

namespace assay::oracle {

/** Tiles of request r: [first[r], first[r + 1]), as the kernel gave them. */
struct KeyOrder {
  std::vector<assay_key_tile> tiles;
  std::vector<int64_t> first; ///< [requests + 1]

  std::span<const assay_key_tile> of(int request) const;
};

/**
 * What the kernel says, asked once for all of a call; `params` are what its family takes. It is
 * asked as its own target, as a plan may depend on the device. Null for a kernel that declares no
 * order, and for merges. Throws OrderError when it refuses or counts nonsense.
 */
std::shared_ptr<const KeyOrder> ask_key_order(const assay_kernel &kernel, const void *params);

/**
 * The order of all keys of a list, counted from the first. Levels count on from each other, and so do the
 * splits of a level. Throws OrderError on a level that the call does not have.
 */
TileOrder declared_order(const KeyOrder &order, const AttentionRows &rows, int list);

} // namespace assay::oracle
