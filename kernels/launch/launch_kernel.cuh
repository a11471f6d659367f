// SPDX-License-Identifier: Apache-2.0
// How a kernel starts: a fiber per thread on simt, <<<>>> on cuda.
#pragma once

#include "kernels/arch/target.cuh"
#include "kernels/launch/status.h"

#if ASSAY_IS_CUDA
#include <cuda_runtime.h>
#else
#include "kernels/simt/launch.h"
#endif

namespace assay::ASSAY_TARGET {

struct LaunchShape {
  int64_t blocks;
  int threads;
  size_t shared_bytes = 0;
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
    kernel<<<static_cast<unsigned>(shape.blocks), shape.threads, shape.shared_bytes,
             static_cast<cudaStream_t>(stream)>>>(params);
    error = cudaGetLastError();
  }
  if (error == cudaSuccess) return ASSAY_OK;
  return set_launch_error(name, cudaGetErrorString(error), shape.blocks, shape.threads,
                          shape.shared_bytes);
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
  const auto body = [&] { kernel(params); };
  if (simt::launch(simt_stream, config, body) == simt::LaunchStatus::kOk) return ASSAY_OK;
  const bool reported = simt_stream != nullptr && !simt_stream->hazards.empty();
  return set_error(ASSAY_HAZARD,
                   std::string(name) + ": " +
                       (reported ? simt_stream->hazards.back().message : "stopped at a hazard"));
}

#endif

} // namespace assay::ASSAY_TARGET
