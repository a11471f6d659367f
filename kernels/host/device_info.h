// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "kernels/abi/assay.h"

#include <cstdint>

namespace assay {

/// Whether the target is in this library (not whether a device is present).
bool built_with(assay_target target);

/// Multiprocessors of the current device; the SIMT executor counts as 4, few enough that small fuzz
/// cases still give a worker several segments and a segment several workers. 0 when no device
/// answers.
int multiprocessors(assay_target target);

/// Bytes of shared memory that a block may ask for on the current device; 0 when none answers.
int64_t shared_memory_limit(assay_target target);

/// Whether warpgroups (kernels/arch/wgmma.cuh) run on the current device.
bool has_warpgroups(assay_target target);

} // namespace assay
