// SPDX-License-Identifier: Apache-2.0
// Compiled once per library, with ASSAY_WITH_SIMT and ASSAY_WITH_CUDA for the targets in it.
#include "kernels/host/device_info.h"

#ifdef ASSAY_WITH_SIMT
#include "kernels/simt/launch.h"
#endif
#ifdef ASSAY_WITH_CUDA
#include <cuda_runtime_api.h>
#endif

namespace assay {

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

bool built_with(assay_target target) {
#ifdef ASSAY_WITH_SIMT
  if (target == ASSAY_TARGET_SIMT) return true;
#endif
#ifdef ASSAY_WITH_CUDA
  if (target == ASSAY_TARGET_CUDA) return true;
#endif
  return false;
}

int multiprocessors([[maybe_unused]] assay_target target) {
#ifdef ASSAY_WITH_SIMT
  constexpr int kSimtMultiprocessors = 4;
  if (target == ASSAY_TARGET_SIMT) return kSimtMultiprocessors;
#endif
#ifdef ASSAY_WITH_CUDA
  if (target == ASSAY_TARGET_CUDA) return attribute(cudaDevAttrMultiProcessorCount);
#endif
  return 0;
}

bool has_warpgroups([[maybe_unused]] assay_target target) {
#ifdef ASSAY_WITH_SIMT
  if (target == ASSAY_TARGET_SIMT) return true;
#endif
#ifdef ASSAY_WITH_CUDA
  // sm_90a runs on no later one.
  if (target == ASSAY_TARGET_CUDA) return attribute(cudaDevAttrComputeCapabilityMajor) == 9;
#endif
  return false;
}

int64_t shared_memory_limit([[maybe_unused]] assay_target target) {
#ifdef ASSAY_WITH_SIMT
  if (target == ASSAY_TARGET_SIMT) return simt::kMaxSharedBytes;
#endif
#ifdef ASSAY_WITH_CUDA
  if (target == ASSAY_TARGET_CUDA) return attribute(cudaDevAttrMaxSharedMemoryPerBlockOptin);
#endif
  return 0;
}

} // namespace assay
