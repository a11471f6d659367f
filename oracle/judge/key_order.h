// SPDX-License-Identifier: Apache-2.0
// The order of keys that a kernel declares (assay_kernel::key_order), as the bounds count keys.
#pragma once

#include "kernels/abi/plugin.h"
#include "oracle/exact/tile_order.h"

namespace assay::oracle {

/**
 * Of all live keys of a request. Levels count on from each other, and so do the splits of a level.
 * Asks as the kernel's own target, as a plan may depend on the device. Throws OrderError when the
 * kernel declares an order and refuses to say it, and on a level that the call does not have.
 */
TileOrder declared_order(const assay_kernel &kernel, const assay_paged_params &params, int request,
                         int qo_head);
TileOrder declared_order(const assay_kernel &kernel, const assay_cascade_params &params,
                         int request, int qo_head);

} // namespace assay::oracle
