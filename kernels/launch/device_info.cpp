// SPDX-License-Identifier: Apache-2.0
#include "kernels/launch/device_info.h"

#include "kernels/simt/launch.h"

#ifdef ASSAY_WITH_CUDA
#include <cuda_runtime_api.h>
#endif

namespace assay {

bool built_with_cuda() {
#ifdef ASSAY_WITH_CUDA
  return true;
#else
  return false;
#endif
}

#ifdef ASSAY_WITH_CUDA
namespace {
/// Of the current device; 0 when none answers.
int attribute(cudaDeviceAttr which) {
  int device = 0, value = 0;
  const bool answers = cudaGetDevice(&device) == cudaSuccess &&
                       cudaDeviceGetAttribute(&value, which, device) == cudaSuccess;
  return answers ? value : 0;
}
} // namespace
#endif

int multiprocessors(assay_target target) {
  constexpr int kSimtMultiprocessors = 4;
  if (target == ASSAY_TARGET_SIMT) return kSimtMultiprocessors;
#ifdef ASSAY_WITH_CUDA
  return attribute(cudaDevAttrMultiProcessorCount);
#else
  return 0;
#endif
}

bool has_warpgroups(assay_target target) {
  if (target == ASSAY_TARGET_SIMT) return true;
#ifdef ASSAY_WITH_CUDA
  return attribute(cudaDevAttrComputeCapabilityMajor) == 9; // sm_90a runs on no later one
#else
  return false;
#endif
}

int64_t shared_memory_limit(assay_target target) {
  if (target == ASSAY_TARGET_SIMT) return simt::kMaxSharedBytes;
#ifdef ASSAY_WITH_CUDA
  return attribute(cudaDevAttrMaxSharedMemoryPerBlockOptin);
#else
  return 0;
#endif
}

} // namespace assay
