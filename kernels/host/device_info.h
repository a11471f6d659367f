// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "kernels/abi/assay.h"

#include <cstdint>

namespace assay {

/// Whether the target is in this library (not whether a device is present).
bool built_with(assay_target target);

/// What a call needs to know of the device that executes it.
struct DeviceFacts {
  int multiprocessors = 0;         // 0: no device answers, and nothing else is known either
  int64_t shared_memory_limit = 0; // bytes that a block may ask for
  bool warpgroups = false;         // kernels were compiled with kernels/arch/wgmma.cuh for it
  bool runs_code = true;           // false: the library has neither its machine code nor PTX
  int capability = 0;              // 90: compute capability 9.0
  const char *code = "";           // the architectures that the library was compiled for
};

/// The facts of the current device. The SIMT executor counts as 4 multiprocessors, few enough that
/// small fuzz cases still give a worker several segments and a segment several workers.
DeviceFacts device_facts(assay_target target);

/// The compute capability of all CUDA devices that this process sees: 90 for 9.0; 0 where they
/// differ or none answers. A process that has set up no driver has none afterwards.
int cuda_capability();

} // namespace assay
