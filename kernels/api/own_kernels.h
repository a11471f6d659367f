// SPDX-License-Identifier: Apache-2.0
// Our kernels as rows of the plugin table.
#pragma once

#include "kernels/abi/plugin.h"

#include <array>

namespace assay {

inline constexpr int kOwnKernels = 0
#define ASSAY_KERNEL_ROW(name, Kernel) +1
#include "kernels/api/kernels.def"
    ;

/// In the order of kernels.def.
std::array<assay_kernel, kOwnKernels> own_kernels(assay_target target);

} // namespace assay
