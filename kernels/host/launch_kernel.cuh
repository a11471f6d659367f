// SPDX-License-Identifier: Apache-2.0
// How a kernel starts: a fiber per thread on simt, <<<>>> on cuda.
#pragma once

#include "kernels/abi/plugin.h"
#include "kernels/arch/target.cuh"
#include "kernels/host/status.h"

#if ASSAY_IS_CUDA
#include "kernels/host/per_device.h"
#include "kernels/host/print_params.h"
#include <cuda_runtime.h>
#else
#include "kernels/simt/launch.h"
#endif

namespace assay::ASSAY_TARGET {

struct LaunchShape {
  int64_t blocks;
  int threads;
  /// Programmatic dependent launch (PDL): before the kernel in front has finished
  /// (arch/grid_order.cuh).
  bool enable_pdl = false;
};

#if ASSAY_IS_CUDA

/// Lets blocks of kKernel ask for kSharedBytes of shared memory on the current device: above 48 KB
/// a kernel must be told so once on a device, which takes longer than all checks of a call.
///
/// What a kernel was told lives in the device's primary context and ends with it: a process that
/// calls cudaDeviceReset, or runs in a context of its own making beside the primary one, finds its
/// later launches refused (ASSAY_LAUNCH_FAILED), as nothing here hears of either.
template <auto kKernel, size_t kSharedBytes>
cudaError_t allow_shared_bytes() {
  constexpr size_t kDefaultLimit = 48 * 1024;
  if constexpr (kSharedBytes > kDefaultLimit) {
    static DoneOnDevices told;
    int device = -1;
    cudaError_t error = cudaGetDevice(&device);
    if (error != cudaSuccess || told.contains(device)) return error;
    error = cudaFuncSetAttribute(kKernel, cudaFuncAttributeMaxDynamicSharedMemorySize,
                                 static_cast<int>(kSharedBytes));
    if (error != cudaSuccess) return error;
    told.add(device);
  }
  return cudaSuccess;
}

/// kSharedBytes: of every block, always the same for a kernel.
template <auto kKernel, size_t kSharedBytes = 0, class Params>
assay_status launch_kernel(const char *name, const LaunchShape &shape, const Params &params,
                           void *stream) {
  cudaError_t error = allow_shared_bytes<kKernel, kSharedBytes>();
  if (error == cudaSuccess) {
    cudaLaunchAttribute enable_pdl = {};
    enable_pdl.id = cudaLaunchAttributeProgrammaticStreamSerialization;
    enable_pdl.val.programmaticStreamSerializationAllowed = 1;
    cudaLaunchConfig_t config = {};
    config.gridDim = dim3(static_cast<unsigned>(shape.blocks));
    config.blockDim = dim3(static_cast<unsigned>(shape.threads));
    config.dynamicSmemBytes = kSharedBytes;
    config.stream = static_cast<cudaStream_t>(stream);
    config.attrs = &enable_pdl;
    config.numAttrs = shape.enable_pdl ? 1 : 0;
    error = cudaLaunchKernelEx(&config, kKernel, params);
  }
  if (error == cudaSuccess) return ASSAY_OK;
  return set_launch_error(name, cudaGetErrorString(error), shape.blocks, shape.threads,
                          kSharedBytes, printed(params));
}

#else

template <auto kKernel, size_t kSharedBytes = 0, class Params>
assay_status launch_kernel(const char *name, const LaunchShape &shape, const Params &params,
                           void *stream) {
  auto *simt_stream = static_cast<simt::Stream *>(stream);
  simt::LaunchConfig config;
  config.grid_x = static_cast<uint32_t>(shape.blocks);
  config.block = static_cast<uint32_t>(shape.threads);
  config.shared_bytes = kSharedBytes;
  config.enable_pdl = shape.enable_pdl;
  const auto body = [&] { kKernel(params); };
  if (simt::launch(simt_stream, config, body) == simt::LaunchStatus::kOk) return ASSAY_OK;
  const bool reported = simt_stream != nullptr && !simt_stream->hazards.empty();
  return set_error(ASSAY_HAZARD,
                   std::string(name) + ": " +
                       (reported ? simt_stream->hazards.back().message : "stopped at a hazard"));
}

#endif

} // namespace assay::ASSAY_TARGET
