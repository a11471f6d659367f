// SPDX-License-Identifier: Apache-2.0
// Plain kernels over ASSAY_FIELD61, right and wrong (reference_kernels.h): controls of
// algebra_exact.
#pragma once

#include "kernels/abi/assay.h"

namespace assay::reference {

assay_status run_field_paged(const assay_paged_params &p);
assay_status run_field_merge_states(const assay_merge_states_params &p);

} // namespace assay::reference
