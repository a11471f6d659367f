// SPDX-License-Identifier: Apache-2.0
#include "corpus/mutants/prelude.h"

#include "kernels/tree/tree_launch.cuh"

namespace assay::n_mutants {
#define ASSAY_INSTANTIATE ASSAY_INSTANTIATE_TREE
#define ASSAY_INSTANTIATE_SIMT ASSAY_INSTANTIATE_TREE
#include "kernels/tree/instantiations.def"
} // namespace assay::n_mutants
