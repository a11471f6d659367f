// SPDX-License-Identifier: Apache-2.0
// Our kernels as rows of the plugin table.
#pragma once

#include "kernels/abi/plugin.h"
#include "kernels/host/tensor_core.h"

#include <array>
#include <vector>

namespace assay {

inline constexpr int kOwnKernels = 0
#define ASSAY_KERNEL_ROW(name, Kernel) +1
#define ASSAY_ENTRY_KERNEL(name, Kernel)
#define ASSAY_RANKS_KERNEL(name, Kernel)
#include "kernels/api/kernels.def"
    ;

/// In the order of kernels.def, as they are declared for devices with `core`.
std::array<assay_kernel, kOwnKernels> own_kernels(assay_target target,
                                                  TensorCore core = kHopperCore);

/// Several ranks as one kernel each, likewise; on the executor only.
std::vector<assay_kernel> rank_kernels();

} // namespace assay
