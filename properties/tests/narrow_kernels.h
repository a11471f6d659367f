// SPDX-License-Identifier: Apache-2.0
// Right kernels as others write them: plain C++, each with an arithmetic of its own, declared, and
// each for a few dtypes, head_dims and page sizes only.
#pragma once

#include "kernels/abi/plugin.h"

namespace assay::narrow {

const assay_plugin &plugin();

} // namespace assay::narrow
