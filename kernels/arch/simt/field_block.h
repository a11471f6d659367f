// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "kernels/arch/simt/block_fma.h"

namespace assay::n_simt::arch::detail {

/// c += a * b on exact numbers: c holds handles, b words of memory, a those or numbers packed by
/// the running warp.
void field_block(MmaTile &tile);

} // namespace assay::n_simt::arch::detail
