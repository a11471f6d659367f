// SPDX-License-Identifier: Apache-2.0
#include "corpus/mutants/prelude.h"

#include "kernels/decode/decode_launch.cuh"

namespace assay::n_mutants {
#define ASSAY_INSTANTIATE ASSAY_INSTANTIATE_DECODE
#define ASSAY_INSTANTIATE_SIMT ASSAY_INSTANTIATE_DECODE
#include "kernels/decode/instantiations.def"
} // namespace assay::n_mutants
