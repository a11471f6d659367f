// SPDX-License-Identifier: Apache-2.0
// The order of keys that a kernel declares (assay_kernel::key_order), as the bounds count keys.
#pragma once

#include <functional>
#include <vector>

#include "kernels/abi/plugin.h"
#include "oracle/exact/tile_order.h"

namespace assay::oracle {

/// What a kernel answers; throws OrderError when it refuses or counts nonsense.
using KeyTiles = std::vector<assay_key_tile>;
using AskKeyTiles = std::function<KeyTiles(int request, int qo_head)>;

/// The kernel itself, in this process. Asks as its own target, as a plan may depend on the device.
/// Kernel and params must outlive it. Null for a kernel that declares no order.
AskKeyTiles ask_kernel(const assay_kernel &kernel, const assay_paged_params &params);
AskKeyTiles ask_kernel(const assay_kernel &kernel, const assay_cascade_params &params);

/**
 * Of all live keys of a request. Levels count on from each other, and so do the splits of a level.
 * Throws OrderError with `ask`, and on a level that the call does not have.
 */
TileOrder declared_order(const AskKeyTiles &ask, const assay_paged_params &params, int request,
                         int qo_head);
TileOrder declared_order(const AskKeyTiles &ask, const assay_cascade_params &params, int request,
                         int qo_head);

} // namespace assay::oracle
