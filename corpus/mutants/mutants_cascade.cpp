// SPDX-License-Identifier: Apache-2.0
#include "corpus/mutants/prelude.h"

#include "kernels/cascade/cascade_launch.cuh"

namespace assay::n_mutants {
#define ASSAY_INSTANTIATE ASSAY_INSTANTIATE_CASCADE
#define ASSAY_INSTANTIATE_SIMT ASSAY_INSTANTIATE_CASCADE
#include "kernels/cascade/instantiations.def"
} // namespace assay::n_mutants
