// SPDX-License-Identifier: Apache-2.0
// How a kernel starts: a fiber per thread on simt, <<<>>> on cuda.
#pragma once

#include "kernels/arch/target.cuh"
#include "kernels/host/status.h"

#if ASSAY_IS_CUDA
#include "kernels/host/print_params.h"
#include <cuda_runtime.h>
#else
#include "kernels/simt/launch.h"
#endif

namespace assay::ASSAY_TARGET {

struct LaunchShape {
  int64_t blocks;
  int threads;
  size_t shared_bytes = 0;
  /// Programmatic dependent launch (PDL): before the kernel in front has finished
  /// (arch/grid_order.cuh).
  bool early_start = false;
};

#if ASSAY_IS_CUDA

template <class Params>
assay_status launch_kernel(void (*kernel)(Params), const char *name, const LaunchShape &shape,
                           const Params &params, void *stream) {
  constexpr size_t kDefaultSharedLimit = 48 * 1024;
  cudaError_t error = cudaSuccess;
  if (shape.shared_bytes > kDefaultSharedLimit)
    error = cudaFuncSetAttribute(kernel, cudaFuncAttributeMaxDynamicSharedMemorySize,
                                 static_cast<int>(shape.shared_bytes));
  if (error == cudaSuccess) {
    cudaLaunchAttribute early_start = {};
    early_start.id = cudaLaunchAttributeProgrammaticStreamSerialization;
    early_start.val.programmaticStreamSerializationAllowed = 1;
    cudaLaunchConfig_t config = {};
    config.gridDim = dim3(static_cast<unsigned>(shape.blocks));
    config.blockDim = dim3(static_cast<unsigned>(shape.threads));
    config.dynamicSmemBytes = shape.shared_bytes;
    config.stream = static_cast<cudaStream_t>(stream);
    config.attrs = &early_start;
    config.numAttrs = shape.early_start ? 1 : 0;
    error = cudaLaunchKernelEx(&config, kernel, params);
  }
  if (error == cudaSuccess) return ASSAY_OK;
  return set_launch_error(name, cudaGetErrorString(error), shape.blocks, shape.threads,
                          shape.shared_bytes, printed(params));
}

#else

template <class Params>
assay_status launch_kernel(void (*kernel)(Params), const char *name, const LaunchShape &shape,
                           const Params &params, void *stream) {
  auto *simt_stream = static_cast<simt::Stream *>(stream);
  simt::LaunchConfig config;
  config.grid_x = static_cast<uint32_t>(shape.blocks);
  config.block = static_cast<uint32_t>(shape.threads);
  config.shared_bytes = shape.shared_bytes;
  config.early_start = shape.early_start;
  const auto body = [&] { kernel(params); };
  if (simt::launch(simt_stream, config, body) == simt::LaunchStatus::kOk) return ASSAY_OK;
  const bool reported = simt_stream != nullptr && !simt_stream->hazards.empty();
  return set_error(ASSAY_HAZARD,
                   std::string(name) + ": " +
                       (reported ? simt_stream->hazards.back().message : "stopped at a hazard"));
}

#endif

} // namespace assay::ASSAY_TARGET
