// SPDX-License-Identifier: Apache-2.0
// A device's number does not say which code it runs: an H100 compiles PTX of compute_80 for itself,
// and such code has no wgmma. A kernel of this library tells what it was compiled with.
#include "kernels/host/device_code.h"

#include "kernels/arch/wgmma.cuh"

#include <cuda_runtime.h>

namespace assay::n_cuda {

static constexpr int kPlainThreads = 32, kWarpgroupThreads = 128;

/// Nobody launches it. The driver tells its launch bounds, and they tell the features.
ASSAY_KERNEL(arch::kWarpgroups ? kWarpgroupThreads : kPlainThreads, 1) code_probe() {}

DeviceCode device_code() {
  cudaFuncAttributes probe{};
  if (cudaFuncGetAttributes(&probe, code_probe) != cudaSuccess) {
    cudaGetLastError(); // the caller's next call must not report it
    return {};
  }
  return {.runs = true, .warpgroups = probe.maxThreadsPerBlock == kWarpgroupThreads};
}

const char *compiled_architectures() { return ASSAY_COMPILED_ARCHITECTURES; }

} // namespace assay::n_cuda
