// SPDX-License-Identifier: Apache-2.0
// Compiled once per library, with ASSAY_WITH_SIMT and ASSAY_WITH_CUDA for the targets in it.
#include "kernels/host/device_info.h"

#ifdef ASSAY_WITH_SIMT
#include "kernels/simt/launch.h"
#endif
#ifdef ASSAY_WITH_CUDA
#include "kernels/host/asked_apart.h"
#include "kernels/host/device_code.h"
#include "kernels/host/per_device.h"

#include <cuda_runtime_api.h>

#include <atomic>
#include <chrono>
#include <mutex>
#endif

namespace assay {

#ifdef ASSAY_WITH_CUDA
namespace {

/// False when the device does not answer.
bool ask_device(int device, DeviceFacts &facts) {
  int multiprocessors = 0, shared_bytes = 0, major = 0, minor = 0;
  const auto ask = [&](int &value, cudaDeviceAttr which) {
    return cudaDeviceGetAttribute(&value, which, device) == cudaSuccess;
  };
  if (!ask(multiprocessors, cudaDevAttrMultiProcessorCount) ||
      !ask(shared_bytes, cudaDevAttrMaxSharedMemoryPerBlockOptin) ||
      !ask(major, cudaDevAttrComputeCapabilityMajor) ||
      !ask(minor, cudaDevAttrComputeCapabilityMinor))
    return false;
  const n_cuda::DeviceCode code = n_cuda::device_code();
  facts.multiprocessors = multiprocessors;
  facts.shared_memory_limit = shared_bytes;
  facts.warpgroups = code.warpgroups;
  facts.runs_code = code.runs;
  facts.capability = 10 * major + minor;
  facts.code = n_cuda::compiled_architectures();
  return true;
}

/// A device is asked once: its facts do not change while the process runs. An ordinal that does not
/// answer is asked again by the next call.
DeviceFacts cuda_facts() {
  struct Known {
    std::atomic<bool> ready{false};
    DeviceFacts facts;
  };
  static Known known[kKnownDevices];
  static std::mutex asking;
  DeviceFacts facts;
  int device = 0;
  if (cudaGetDevice(&device) != cudaSuccess) return facts;
  if (!is_known_device(device)) {
    ask_device(device, facts);
    return facts;
  }
  Known &of_device = known[device];
  if (!of_device.ready.load(std::memory_order_acquire)) {
    const std::lock_guard lock(asking);
    if (!of_device.ready.load(std::memory_order_relaxed)) {
      if (!ask_device(device, facts)) return facts;
      of_device.facts = facts;
      of_device.ready.store(true, std::memory_order_release);
    }
  }
  return of_device.facts;
}

/// The device's compute capability, 0 where it does not answer. Makes no context.
int capability_of(int device) {
  int major = 0, minor = 0;
  const bool known =
      cudaDeviceGetAttribute(&major, cudaDevAttrComputeCapabilityMajor, device) == cudaSuccess &&
      cudaDeviceGetAttribute(&minor, cudaDevAttrComputeCapabilityMinor, device) == cudaSuccess;
  return known ? 10 * major + minor : 0;
}

int common_capability() {
  int devices = 0;
  if (cudaGetDeviceCount(&devices) != cudaSuccess || devices == 0) return 0;
  const int first = capability_of(0);
  for (int i = 1; i < devices; ++i)
    if (capability_of(i) != first) return 0;
  return first;
}

} // namespace
#endif

int cuda_capability() {
#ifdef ASSAY_WITH_CUDA
  // A driver that is set up here would not survive the fork of processes for kernels. Where another
  // process gets no answer, there is no device, or this one has set up its driver already.
  static const int capability = asked_apart_or_here(&common_capability, std::chrono::seconds(60));
  return capability;
#else
  return 0;
#endif
}

bool built_with(assay_target target) {
#ifdef ASSAY_WITH_SIMT
  if (target == ASSAY_TARGET_SIMT) return true;
#endif
#ifdef ASSAY_WITH_CUDA
  if (target == ASSAY_TARGET_CUDA) return true;
#endif
  return false;
}

DeviceFacts device_facts([[maybe_unused]] assay_target target) {
#ifdef ASSAY_WITH_SIMT
  if (target == ASSAY_TARGET_SIMT)
    return {.multiprocessors = 4, .shared_memory_limit = simt::kMaxSharedBytes, .warpgroups = true};
#endif
#ifdef ASSAY_WITH_CUDA
  if (target == ASSAY_TARGET_CUDA) return cuda_facts();
#endif
  return {};
}

} // namespace assay
