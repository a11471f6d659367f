// SPDX-License-Identifier: Apache-2.0
// The declared key order of our kernels: which keys meet which running maximum, in which order. A
// bound that replays roundings (oracle T1, T2) needs it; the kernels do not read it.
#pragma once

#include "kernels/abi/plugin.h"

namespace assay {

assay_status v1_key_order(const void *params, int32_t request, int32_t qo_head,
                          assay_key_tile *tiles, int32_t capacity, int32_t *count);
assay_status v2_key_order(const void *params, int32_t request, int32_t qo_head,
                          assay_key_tile *tiles, int32_t capacity, int32_t *count);
assay_status cascade_key_order(const void *params, int32_t request, int32_t qo_head,
                               assay_key_tile *tiles, int32_t capacity, int32_t *count);

} // namespace assay
