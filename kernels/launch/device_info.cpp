// SPDX-License-Identifier: Apache-2.0
#include "kernels/launch/device_info.h"

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

int multiprocessors(assay_target target) {
  constexpr int kSimtMultiprocessors = 2;
  if (target == ASSAY_TARGET_SIMT) return kSimtMultiprocessors;
#ifdef ASSAY_WITH_CUDA
  int device = 0, count = 0;
  if (cudaGetDevice(&device) == cudaSuccess &&
      cudaDeviceGetAttribute(&count, cudaDevAttrMultiProcessorCount, device) == cudaSuccess)
    return count;
#endif
  return 0;
}

} // namespace assay
