// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "kernels/arch/simt/block_fma.h"

namespace assay::n_simt::arch::detail {

/// c += a * b on exact numbers. c holds handles, and b holds words of memory. a holds words of
/// memory, or numbers that the running warp has packed.
void field_block(MmaTile &tile);

} // namespace assay::n_simt::arch::detail
